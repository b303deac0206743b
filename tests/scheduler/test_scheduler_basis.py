"""A decision carries its reason in numbers: S by its terms, the rival, the interval, what was spent and saved."""

from dataclasses import replace

import pytest

from kbtui.domain.codec import from_plain, to_plain
from kbtui.domain.evaluation import RungOutcome
from kbtui.domain.event import Basis, Decision, RungCompleted, Spent
from kbtui.domain.measurement import Outcome
from kbtui.domain.rung import COMPILE, CONFIRM, MEASURE, PROFILE, SCREEN
from kbtui.domain.verdict import Proof, Reason, rejected
from kbtui.scheduler.basis import basis_words
from kbtui.scheduler.judge import judge
from kbtui.scheduler.score import score_at
from kbtui.scheduler.state import RunState
from tests.fakes.decided import admitted, against, answered, state_with, timed

SLOWER = against("c0001", 0.8, Outcome.SLOWER, 0.79, 0.81)


def done(candidate: str, rung: int, gpu_s: float, wall_s: float, speed: float | None, leads: bool) -> RungCompleted:
    outcome = replace(timed() if speed else replace(timed(), measurement=None), gpu_s=gpu_s, wall_s=wall_s)
    return RungCompleted(candidate, rung, outcome, Decision.PROMOTE, "", speed, leads)


def a_run(*more: RungCompleted) -> RunState:
    """The first kernel measured and profiled; a second candidate that was compiled and screened."""
    return state_with(
        admitted(1),
        done("c0001", COMPILE, 0.0, 1.0, None, False),
        done("c0001", SCREEN, 0.5, 0.6, 1.0, True),
        done("c0001", MEASURE, 2.0, 2.5, 1.0, True),
        done("c0001", PROFILE, 10.0, 11.0, 1.0, True),
        *answered(admitted(2, "other", "playbook")),
        done("c0002", COMPILE, 0.0, 1.0, None, False),
        *more,
    )


def basis_of(state: RunState, rung: int, outcome: RungOutcome) -> Basis:
    basis = judge(state, "c0002", rung, outcome).basis
    assert basis is not None
    return basis


def test_who_is_pruned_saves_what_the_rungs_above_cost_others() -> None:
    state = a_run()
    assert judge(state, "c0002", SCREEN, timed(SLOWER)).decision is Decision.PROMOTE
    far = against("c0001", 0.3, Outcome.SLOWER)
    basis = basis_of(state, SCREEN, replace(timed(far), gpu_s=0.4, wall_s=0.5))
    assert basis.spent == Spent(pytest.approx(1.5), pytest.approx(0.4))
    assert basis.saved == Spent(pytest.approx(13.5), pytest.approx(12.0))
    assert basis.unpriced == (CONFIRM,)


def test_who_goes_on_or_failed_saves_nothing() -> None:
    state = a_run()
    faster = against("c0001", 1.2, Outcome.FASTER)
    assert basis_of(state, SCREEN, timed(faster)).saved == Spent()
    wrong = RungOutcome(rejected(Reason.WRONG_VALUES, 1, Proof.GPU, "error 0.34"), 0.1, 0.2)
    basis = basis_of(state, SCREEN, wrong)
    assert (basis.saved, basis.score, basis.rival) == (Spent(), None, None)
    assert basis.spent == Spent(pytest.approx(1.2), pytest.approx(0.1))


def test_the_rival_comes_with_its_own_s_and_the_interval_is_the_comparisons() -> None:
    state = a_run()
    basis = basis_of(state, SCREEN, timed(SLOWER))
    assert (basis.rival, basis.ratio, basis.low, basis.high) == ("c0001", 0.8, 0.79, 0.81)
    assert basis.rival_score == score_at(state.tried["c0001"], SCREEN)
    assert basis.score is not None
    assert basis.score.speed == pytest.approx(-0.2357, abs=1e-4)  # log of 0.79, the lower bound


def test_the_first_kernel_as_a_rival_by_name_has_its_s_too() -> None:
    basis = basis_of(a_run(), CONFIRM, timed(against("first", 1.3, Outcome.FASTER)))
    assert basis.rival == "first"
    assert basis.rival_score is None  # it was not timed on this rung
    assert basis_of(a_run(), PROFILE, timed(against("first", 1.3, Outcome.FASTER))).rival_score is not None


def test_a_person_reads_score_rival_interval_spent_and_saved() -> None:
    far = replace(timed(against("c0001", 0.3, Outcome.SLOWER, 0.29, 0.31)), gpu_s=0.4, wall_s=0.5)
    score, cost = basis_words(basis_of(a_run(), SCREEN, far))
    assert score.startswith("S -1.248 = speed -1.238, stability -0.010")
    assert score.endswith("; c0001 has S -0.010")
    assert cost == (
        "spent so far 1.5 s (GPU 0.4 s); saved 13.5 s (GPU 12.0 s), as the rungs above cost others;"
        " the cost of rung 4 is not known yet"
    )
    assert basis_words(Basis()) == ()


def test_a_basis_is_kept_with_its_event_and_older_events_have_none() -> None:
    outcome = timed(SLOWER)
    event = RungCompleted("c0002", SCREEN, outcome, Decision.PRUNE, "", 0.8, False, basis_of(a_run(), SCREEN, outcome))
    plain = to_plain(event)
    assert from_plain(RungCompleted, plain) == event
    del plain["basis"]
    assert from_plain(RungCompleted, plain) == replace(event, basis=None)
