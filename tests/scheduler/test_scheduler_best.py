"""What a run would hand over if it were stopped: after every event of whole searches, and case by case."""

import pytest

from benchmarks.landscapes import search
from kbtui.domain.event import CandidateAdmitted, Decision, Event, RungCompleted
from kbtui.domain.measurement import Outcome
from kbtui.domain.rung import MEASURE, PROFILE
from kbtui.engine.memory_ledger import MemoryLedger
from kbtui.scheduler.best import best_commit_with, best_so_far
from kbtui.scheduler.state import RunState
from tests.fakes.decided import admitted, against, answered, state_with, timed
from tests.fakes.search import PlantedDevice, engine_on


def completed(candidate: str, rung: int, score: float, leads: bool) -> RungCompleted:
    outcome = timed(against("c0001", score, Outcome.FASTER))
    return RungCompleted(candidate, rung, outcome, Decision.PROMOTE, "", score, leads)


DRAFTED = (admitted(1), *answered(admitted(2, "a", "playbook"), admitted(3, "b", "playbook")))
PROFILED = (
    *DRAFTED,
    completed("c0001", MEASURE, 1.0, leads=True),
    completed("c0002", MEASURE, 1.5, leads=True),
    completed("c0002", PROFILE, 1.5, leads=True),
)


def best_after(*events: Event) -> str:
    best = best_so_far(state_with(*events))
    assert best is not None
    return best.candidate.id


def test_who_won_at_the_measure_rung_is_best_before_its_profile_comes() -> None:
    assert best_after(*PROFILED) == "c0002"
    assert best_after(*PROFILED, completed("c0003", MEASURE, 1.6, leads=True)) == "c0003"


def test_who_lost_at_the_profile_rung_is_not_best_for_having_won_below() -> None:
    won = completed("c0003", MEASURE, 1.6, leads=True)
    lost = completed("c0003", PROFILE, 1.4, leads=False)
    assert best_after(*PROFILED, won, lost) == "c0002"


def test_a_first_kernel_profiled_as_the_baseline_is_not_best_beside_one_that_beat_it() -> None:
    measured = (completed("c0001", MEASURE, 1.0, leads=True), completed("c0002", MEASURE, 1.5, leads=True))
    assert best_after(*DRAFTED, *measured, completed("c0001", PROFILE, 1.0, leads=True)) == "c0002"


def searched(kind: str) -> MemoryLedger:
    if kind == "planted":
        ledger = MemoryLedger()
        engine_on(ledger, PlantedDevice()).run()
        return ledger
    engine, _ = search(int(kind), 120.0)
    ledger = engine._ledger
    assert isinstance(ledger, MemoryLedger)
    return ledger


@pytest.mark.parametrize("kind", ["planted", "0", "1", "2"])
def test_the_ledgers_tree_holds_what_is_best_once_each_event_has_happened(kind: str) -> None:
    ledger, state = searched(kind), RunState()
    for envelope, recorded in zip(ledger.log, ledger.best, strict=True):
        assert best_commit_with(state, envelope.event) == recorded
        state.apply(envelope)
        best = best_so_far(state)
        if not isinstance(envelope.event, CandidateAdmitted):
            assert recorded == (best.commit if best else None)
