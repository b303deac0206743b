"""The list of runs and the viewer name the best candidate as the scheduler does, after every event of searches."""

from dataclasses import replace

import pytest

from benchmarks.landscapes import search
from kbtui.domain.event import CandidateAdmitted, RunStarted
from kbtui.engine.memory_ledger import MemoryLedger
from kbtui.scheduler.best import best_so_far
from kbtui.scheduler.state import RunState
from kbtui.tui.view.standing import best_of
from store.reader import Reader
from store.record import create_run
from tests.fakes.search import PlantedDevice, engine_on


def planted():
    ledger = MemoryLedger()
    engine_on(ledger, PlantedDevice()).run()
    return ledger.log


def landscape():
    engine, _ = search(0, 40.0)
    return list(engine._ledger.events())


@pytest.mark.parametrize("searched", [planted, landscape])
def test_the_index_knows_who_is_best_once_each_event_has_happened(workspace, searched):
    log, state, led = searched(), RunState(), set()
    assert isinstance(log[0].event, RunStarted)
    ledger = create_run(workspace, log[0].event)
    state.apply(log[0])
    commit = ledger.commit_candidate(1, "x = 1\n", (), "first", ())
    with Reader(workspace) as reader:
        for envelope in log[1:]:
            event = envelope.event
            ledger.append(
                replace(event, commit=commit) if isinstance(event, CandidateAdmitted) else event, envelope.wall_s, 0.0
            )
            state.apply(envelope)
            best, (row,) = best_so_far(state), reader.runs()
            if best is not None and best.score is not None:
                assert (row.best_candidate, row.best_score) == (best.candidate.id, best.score)
                shown = best_of(state)
                assert shown is not None
                assert shown.candidate == best.candidate.id
                led.add(row.best_candidate)
    ledger.close()
    assert len(led) > 1
