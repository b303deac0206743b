"""Confirmations in two helpings of process pairs: who gets the second one, and that both together err as stated."""

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.domain.measurement import Comparison, Outcome
from kbtui.domain.rung import CONFIRM, DEFAULT_LADDER, MEASURE, PROFILE
from kbtui.evaluation.measure.adjudicate import ErrorRates, Evidence, compare, process_sigma
from kbtui.evaluation.measure.further import compare_fresh, may_yet_win, n_further

LONG = DEFAULT_LADDER[CONFIRM]
SHORT = replace(LONG, more_process_pairs=0)
RATES = ErrorRates()

ratios = st.floats(0.5, 2.0)
comparisons = st.builds(
    lambda outcome, ratio: Comparison("it", outcome, ratio, ratio, ratio, 0.9, 12, 3), st.sampled_from(Outcome), ratios
)
evidences = st.builds(
    lambda processes, us: Evidence(("s",), (us,), tuple(tuple((r,) for r in pairs) for pairs in processes)),
    st.lists(st.lists(st.floats(-0.1, 0.1), min_size=4, max_size=6), min_size=2, max_size=6),
    st.floats(5.0, 1000.0),
)


def met(outcome: Outcome, ratio: float) -> Comparison:
    return Comparison("it", outcome, ratio, ratio - 0.01, ratio + 0.01, 0.9, 12, 3)


AHEAD, BEHIND = met(Outcome.UNCLEAR, 1.012), met(Outcome.UNCLEAR, 0.999)
WON, LOST, TIED = met(Outcome.FASTER, 1.9), met(Outcome.SLOWER, 0.9), met(Outcome.TIE, 1.001)


@pytest.mark.parametrize(
    ("against", "worth"),
    [
        ([AHEAD], True), ([AHEAD, WON], True), ([AHEAD, AHEAD], True),
        ([], False), ([WON], False), ([WON, WON], False), ([BEHIND], False), ([TIED], False), ([LOST], False),
        ([AHEAD, BEHIND], False), ([AHEAD, TIED], False), ([AHEAD, LOST], False), ([WON, TIED], False),
    ],
)  # fmt: skip
def test_more_processes_are_played_where_they_could_make_the_candidate_win(
    against: list[Comparison], worth: bool
) -> None:
    assert may_yet_win(against) is worth
    assert n_further(LONG, against) == (LONG.more_process_pairs if worth else 0)
    assert n_further(SHORT, against) == 0


def test_only_a_rung_of_fresh_processes_plays_more_of_them() -> None:
    assert n_further(replace(DEFAULT_LADDER[MEASURE], more_process_pairs=3), [AHEAD]) == 0
    assert n_further(DEFAULT_LADDER[PROFILE], [AHEAD]) == 0


@given(st.lists(comparisons, max_size=4))
def test_nobody_gets_more_who_could_not_win_were_every_unclear_one_won(met_them: list[Comparison]) -> None:
    won = [replace(c, outcome=Outcome.FASTER) if c.outcome is Outcome.UNCLEAR else c for c in met_them]
    if may_yet_win(met_them):
        assert all(c.outcome is Outcome.FASTER for c in won)
        assert any(c.outcome is Outcome.UNCLEAR for c in met_them)


@given(st.integers(1, 20))
def test_the_parts_of_an_error_rate_add_up_to_what_is_stated(n_decisions: int) -> None:
    part = RATES.split(n_decisions)
    assert math.isclose(n_decisions * part.false_faster, RATES.false_faster)
    assert (part.false_slower, part.tie) == (RATES.false_slower, RATES.tie)


@given(evidences)
def test_a_rung_that_may_look_twice_calls_nobody_faster_whom_one_look_would_not(evidence: Evidence) -> None:
    twice, once = compare_fresh("it", evidence, LONG), compare_fresh("it", evidence, SHORT)
    assert once == compare("it", evidence, 1)
    assert (twice.ratio, twice.low, twice.high) == (once.ratio, once.low, once.high)
    if twice.outcome is not once.outcome:
        assert (once.outcome, twice.outcome) in ((Outcome.FASTER, Outcome.UNCLEAR), (Outcome.FASTER, Outcome.TIE))


def helped_twice(rng: random.Random, us: float, speedup: float) -> Comparison:
    """Processes differ exactly as the prior says: Student's t of its degrees, nothing within them."""

    def process() -> tuple[tuple[float, ...], ...]:
        chi = math.sqrt(sum(rng.gauss(0, 1) ** 2 for _ in range(3)) / 3)
        moved = math.log(speedup) + process_sigma(us) * rng.gauss(0, 1) / chi
        return tuple((moved + 1e-6 * (i % 2),) for i in range(4))

    processes = [process() for _ in range(LONG.process_pairs)]
    first = compare_fresh("it", Evidence(("s",), (us,), tuple(processes)), LONG)
    processes += [process() for _ in range(n_further(LONG, [first]))]
    return compare_fresh("it", Evidence(("s",), (us,), tuple(processes)), LONG)


@pytest.mark.parametrize("us", [7.8, 135.0])
def test_both_looks_together_rarely_call_the_same_kernel_faster_or_slower(us: float) -> None:
    found = [helped_twice(random.Random(f"same/{us}/{i}"), us, 1.0).outcome for i in range(4000)]
    assert found.count(Outcome.FASTER) / len(found) <= RATES.false_faster + 0.0035  # three standard errors
    assert found.count(Outcome.SLOWER) / len(found) <= RATES.false_slower + 0.0067


def test_a_second_helping_finds_what_is_too_close_for_the_first() -> None:
    found = [helped_twice(random.Random(f"closer/{i}"), 7.8, 1.045) for i in range(400)]
    first, both = (sum(c.outcome is Outcome.FASTER and c.n_processes <= n for c in found) for n in (3, 6))
    assert both > 1.5 * first
    assert both / len(found) > 0.6
