"""What a search is said to have done: nothing found wrong counts as speed, and what was cut short is not over."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.six import search as searching
from benchmarks.six.search import Wanted, search
from benchmarks.six.story import story_of
from kbtui.domain.evaluation import RungOutcome
from kbtui.domain.event import Decision, Envelope, Event, RungCompleted
from kbtui.domain.rung import MEASURE, SCREEN
from kbtui.domain.verdict import Proof, Reason, rejected
from kbtui.errors import EngineError
from kbtui.scheduler.state import RunState
from store.record import create_run
from store.workspace import create_workspace
from tests.fakes.decided import admitted, answered, state_with, timed


def completed(candidate: str, rung: int, score: float | None, outcome: RungOutcome) -> RungCompleted:
    decision = Decision.PROMOTE if outcome.verdict.ok else Decision.REJECT
    return RungCompleted(candidate, rung, outcome, decision, "", score, score is not None)


WRONG = RungOutcome(rejected(Reason.WRONG_VALUES, 2, Proof.GPU, "on a hidden shape"), 0.1, 0.2)
STORY: tuple[Event, ...] = (
    admitted(1),
    *answered(admitted(2, "a", "playbook"), admitted(3, "b", "playbook")),
    completed("c0002", SCREEN, 2.0, timed()),
    completed("c0002", MEASURE, None, WRONG),
    completed("c0003", SCREEN, 1.5, timed()),
    completed("c0003", MEASURE, 1.5, timed()),
)


def told() -> tuple[list[Envelope], RunState]:
    state = state_with(*STORY)
    started = state.started
    assert started is not None
    return [Envelope(n, "", float(n), 0.0, event) for n, event in enumerate((started, *STORY))], state


def test_a_fast_kernel_found_wrong_later_was_never_as_good_as_the_result() -> None:
    envelopes, state = told()
    story = story_of(envelopes, state, state.tried["c0003"])
    first = next(e for e in envelopes if isinstance(e.event, RungCompleted) and e.event.candidate == "c0003")
    assert story.within_wall_s == first.wall_s
    assert [step.candidate for step in story.steps] == ["c0003"]
    assert story.rejected == (("wrong_values", 1),)


def test_a_search_that_was_cut_short_is_left_for_another_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    envelopes, _ = told()
    ledger = create_run(create_workspace(tmp_path / "runs"), envelopes[0].event)  # type: ignore[arg-type]
    commit = ledger.commit_candidate(1, "x = 1\n", (), "first", ())
    ledger.append(replace(admitted(1), commit=commit), 1.0, 0.0)
    ledger.append(completed("c0001", SCREEN, 1.0, timed()), 2.0, 0.0)
    ledger.close()
    monkeypatch.setattr(searching, "next_command", lambda *_: [sys.executable, "-c", "print('out of luck')"])
    wanted = Wanted(tmp_path / "problem", tmp_path / "runs", "model:a100", 5.0, 0)
    with pytest.raises(EngineError, match="cut short: out of luck; call again to go on with it"):
        search(wanted, tmp_path / "log")
