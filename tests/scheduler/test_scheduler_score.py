"""S(p, r), term by term."""

import math
from dataclasses import replace

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from kbtui.domain.event import Decision, RungCompleted
from kbtui.domain.measurement import Outcome, ShapeTiming
from kbtui.domain.rung import CONFIRM, MEASURE, PROFILE, SCREEN
from kbtui.scheduler.score import UNSTABLE, promise, score_at, score_of, score_words, term_words
from kbtui.scheduler.state import RunState, Tried
from tests.fakes.decided import admitted, against, answered, state_with, timed

SPEEDS = st.floats(0.2, 5.0)
RUNGS = (SCREEN, MEASURE, PROFILE, CONFIRM)


def result(
    speed: float,
    rung: int = MEASURE,
    *,
    low: float | None = None,
    half_us: float = 0.0,
    unstable: str | None = None,
    bound_us: float | None = None,
    leads: bool = False,
    candidate: str = "c0002",
) -> RungCompleted:
    outcome = timed(against("first", speed, Outcome.FASTER, low or speed, speed), unstable=unstable)
    assert outcome.measurement is not None
    timing = ShapeTiming("64", 100.0, 100.0 - half_us, 100.0 + half_us, 20)
    measurement = replace(outcome.measurement, timings=(timing,))
    outcome = replace(outcome, measurement=measurement, bound_us=bound_us)
    return RungCompleted(candidate, rung, outcome, Decision.PROMOTE, "", speed, leads)


def tried(*results: RungCompleted) -> Tried:
    event = admitted(2)
    return Tried(event.candidate, event.commit, SCREEN, 1, {r.rung: r for r in results}, None)


def total(*results: RungCompleted) -> float:
    score = score_of(tried(*results))
    assert score is not None
    return score.total


@given(SPEEDS, SPEEDS)
def test_who_is_faster_scores_higher_all_else_being_equal(one: float, other: float) -> None:
    assume(one == other or not math.isclose(one, other, rel_tol=1e-12))  # neighbours have one logarithm
    assert (one > other) == (total(result(one)) > total(result(other)))


@given(SPEEDS)
@example(0.2)
def test_a_neighbouring_number_never_scores_the_wrong_way_round(speed: float) -> None:
    assert total(result(math.nextafter(speed, math.inf))) >= total(result(speed))


@given(SPEEDS, st.floats(0.5, 1.0))
def test_less_is_promised_where_less_is_sure(speed: float, part: float) -> None:
    assert total(result(speed, low=part * speed)) <= total(result(speed))


def test_wild_times_and_an_unstable_row_cost_their_terms() -> None:
    calm = total(result(1.5))
    assert total(result(1.5, half_us=2.0)) == pytest.approx(calm - 0.02, abs=1e-4)
    assert total(result(1.5, unstable="throttled")) == pytest.approx(calm - UNSTABLE)


@pytest.mark.parametrize(("bound_us", "cost"), [(None, 0.0), (100.0, 0.03), (110.0, 0.03), (50.0, 0.0)])
def test_who_sits_at_the_bound_has_nothing_left_to_gain(bound_us: float | None, cost: float) -> None:
    score = score_of(tried(result(1.5, bound_us=bound_us)))
    assert score is not None
    assert score.headroom == pytest.approx(-cost, abs=1e-4)


def test_the_same_speed_is_worth_more_the_higher_the_rung() -> None:
    totals = [total(result(1.5, rung)) for rung in (SCREEN, MEASURE, PROFILE, CONFIRM)]
    assert totals == sorted(set(totals))


def test_the_highest_rung_that_timed_it_counts_and_none_where_none_did() -> None:
    score = score_of(tried(result(1.5, SCREEN), result(1.2, MEASURE)))
    assert score == score_at(tried(result(1.2, MEASURE)), MEASURE)
    assert score_of(tried()) is None


def measured(*more: RungCompleted) -> RunState:
    drafts = answered(admitted(2, "a", "playbook"), admitted(3, "b", "playbook"))
    return state_with(admitted(1), *drafts, result(1.5, leads=True), *more)


def test_a_promise_is_beside_the_incumbent_of_the_same_rung() -> None:
    state = measured(result(1.2, candidate="c0003"))
    assert promise(state, state.tried["c0002"]) == pytest.approx(1.01, abs=1e-3)
    assert promise(state, state.tried["c0003"]) == pytest.approx(1.01 * 1.2 / 1.5, rel=1e-3)
    assert promise(state, state.tried["c0001"]) is None


@given(SPEEDS, SPEEDS, st.floats(0.0, 50.0), st.floats(60.0, 100.0), st.sampled_from(RUNGS))
def test_the_terms_on_screen_add_up_to_the_s_beside_them(
    speed: float, part: float, half_us: float, bound_us: float, rung: int
) -> None:
    score = score_of(tried(result(speed, rung, low=speed * min(part, 1.0), half_us=half_us, bound_us=bound_us)))
    assert score is not None
    whole, terms = score_words(score).removeprefix("S ").split(" = ")
    told = [float(word.split()[-1]) for word in terms.split(", ")]
    assert whole == term_words(score.total)
    assert sum(told) == pytest.approx(float(whole), abs=1e-9)
    exact = (score.speed, score.stability, score.headroom, score.bonus)
    assert all(abs(one - other) < 0.0011 for one, other in zip(told, exact, strict=True))


def test_no_term_is_a_negative_zero() -> None:
    assert [term_words(value) for value in (-0.0, -0.0004, 0.0004, -0.0006)] == ["+0.000", "+0.000", "+0.000", "-0.001"]
