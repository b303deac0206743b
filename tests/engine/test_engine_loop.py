"""The engine over fakes: it finds the planted best, keeps its budget, obeys commands, and resumes as if undisturbed."""

from dataclasses import dataclass, field

import pytest

from kbtui.domain.codec import envelope_from_plain, envelope_to_plain, to_plain
from kbtui.domain.evaluation import Evaluated, EvaluationRequest
from kbtui.domain.event import Budget, CommandAccepted, CommandKind, EndReason, RungCompleted
from kbtui.domain.rung import CONFIRM
from kbtui.engine.memory_ledger import MemoryLedger
from kbtui.scheduler.best import best_so_far
from kbtui.scheduler.state import RunState
from tests.fakes.search import PlantedDevice, engine_on


class Killed(BaseException):
    """Stands for SIGKILL: nothing after it runs."""


class DyingLedger(MemoryLedger):
    """Dies just before or just after the n-th append."""

    dies_at = -1
    after = False

    def append(self, *args: object, **kwargs: object):  # type: ignore[no-untyped-def, override]
        dying = len(self.log) == self.dies_at
        if dying and not self.after:
            raise Killed
        envelope = super().append(*args, **kwargs)  # type: ignore[arg-type]
        if dying:
            raise Killed
        return envelope


def test_the_search_reaches_the_best_basin_although_it_starts_slow() -> None:
    ledger = MemoryLedger()
    ended = engine_on(ledger, PlantedDevice()).run()
    state = engine_on(ledger, PlantedDevice()).state
    best = best_so_far(state)
    assert ended.reason is EndReason.EXHAUSTED
    assert best is not None
    assert ledger.source(best.commit) == "structure=2 tune=5"
    assert state.champion == best.candidate.id


def test_a_wrong_candidate_is_rejected_and_never_best() -> None:
    ledger = MemoryLedger()
    engine_on(ledger, PlantedDevice()).run()
    state = engine_on(ledger, PlantedDevice()).state
    wrong = [t for t in state.tried.values() if t.candidate.summary == "structure=1 tune=3"]
    assert wrong, "the planted wrong candidate was never tried"
    assert wrong[0].last is not None
    assert wrong[0].last.decision == "reject"
    assert wrong[0].commit not in ledger.best


def test_no_rung_of_a_candidate_is_evaluated_twice() -> None:
    device = PlantedDevice()
    engine_on(MemoryLedger(), device).run()
    assert len(device.evaluated) == len(set(device.evaluated))


@pytest.mark.parametrize("limit", [2, 3, 8])
def test_a_candidate_budget_stops_admission_and_still_confirms(limit: int) -> None:
    ledger = MemoryLedger()
    engine = engine_on(ledger, PlantedDevice(), Budget(candidates=limit))
    engine.run()
    assert len(engine.state.tried) == limit
    assert engine.state.champion is not None


def test_a_gpu_budget_ends_the_run_by_itself() -> None:
    ledger = MemoryLedger()
    engine = engine_on(ledger, PlantedDevice(), Budget(gpu_s=20.0))
    assert engine.run().reason is EndReason.BUDGET
    assert engine.state.gpu_s < 40.0


@dataclass
class TimedDevice(PlantedDevice):
    """Takes as long as it costs, and keeps how many further process pairs each confirmation might have played."""

    now_s: float = 0.0
    further: list[int] = field(default_factory=list)

    def evaluate(self, request: EvaluationRequest, on_sample: object) -> Evaluated:
        self.now_s += request.rung.index
        if request.rung.index == CONFIRM:
            self.further.append(request.rung.more_process_pairs)
        return super().evaluate(request, on_sample)


@pytest.mark.parametrize(("budget", "further"), [(Budget(), 3), (Budget(wall_s=20.0), 0)])
def test_a_confirmation_goes_on_only_where_the_budget_bears_it(budget: Budget, further: int) -> None:
    device = TimedDevice()
    engine = engine_on(MemoryLedger(), device, budget, now_s=lambda: device.now_s)
    engine.run()
    assert device.further
    assert set(device.further) == {further}
    assert engine.state.champion is not None


def test_stop_is_recorded_before_it_is_obeyed() -> None:
    ledger = MemoryLedger(inbox=[CommandAccepted(1, CommandKind.STOP)])
    ended = engine_on(ledger, PlantedDevice()).run()
    kinds = [type(e.event).__name__ for e in ledger.log]
    assert ended.reason is EndReason.STOPPED
    assert kinds.index("CommandAccepted") < kinds.index("RunEnded")


def test_a_submitted_kernel_becomes_a_candidate_with_its_parent() -> None:
    command = CommandAccepted(1, CommandKind.SUBMIT, "structure=2 tune=4", note="by hand", parent="c0001")
    ledger = MemoryLedger()
    engine = engine_on(ledger, PlantedDevice())
    ledger.inbox.append(command)
    engine.run()
    mine = [t for t in engine.state.tried.values() if t.candidate.origin.generator == "person"]
    assert [t.candidate.summary for t in mine] == ["by hand"]


@pytest.mark.parametrize("after", [False, True])
def test_killed_at_every_append_it_resumes_to_the_same_story(after: bool) -> None:
    undisturbed = MemoryLedger()
    engine_on(undisturbed, PlantedDevice()).run()
    story = [to_plain(e.event) for e in undisturbed.log]
    for dies_at in range(1, len(story)):
        ledger = DyingLedger()
        first_device = PlantedDevice()
        engine = engine_on(ledger, first_device)
        ledger.dies_at, ledger.after = dies_at, after
        with pytest.raises(Killed):
            engine.run()
        ledger.dies_at = -1
        finished = {(e.event.candidate, e.event.rung) for e in ledger.log if isinstance(e.event, RungCompleted)}
        second_device = PlantedDevice()
        if not any(type(e.event).__name__ == "RunEnded" for e in ledger.log):
            engine_on(ledger, second_device).run()
        assert [to_plain(e.event) for e in ledger.log] == story
        assert not finished & set(second_device.evaluated)


def test_events_survive_json() -> None:
    ledger = MemoryLedger()
    engine_on(ledger, PlantedDevice()).run()
    state = RunState()
    for envelope in ledger.log:
        copy = envelope_from_plain(envelope_to_plain(envelope))
        assert copy == envelope
        state.apply(copy)
    assert state.champion is not None


def test_a_kernel_submitted_again_is_recorded_as_here_already_and_tried_once() -> None:
    ledger = MemoryLedger()
    engine = engine_on(ledger, PlantedDevice())
    source = "structure=2 tune=4"
    ledger.inbox += [CommandAccepted(n, CommandKind.SUBMIT, source, note="by hand") for n in (1, 2)]
    ledger.inbox.append(CommandAccepted(3, CommandKind.SUBMIT, "structure=0 tune=0"))
    engine.run()
    ledger.inbox.append(CommandAccepted(4, CommandKind.SUBMIT, source))
    engine._take_commands()
    notes = [c.note for c in engine.state.commands]
    assert notes[:2] == ["by hand", "by hand; here already, as command 1"]
    mine = [t.candidate.id for t in engine.state.tried.values() if t.candidate.origin.generator == "person"]
    assert len(mine) == 2  # the first kernel had not been admitted yet when it was submitted
    assert notes[2:] == ["", f"here already, as {mine[0]}"]
