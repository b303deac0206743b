"""States and outcomes of a run, made event by event."""

from kbtui.domain.candidate import Candidate, Origin
from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.evaluation import RungOutcome
from kbtui.domain.event import Budget, CandidateAdmitted, ChildEntry, Envelope, Event, ProposalsMade, RunStarted
from kbtui.domain.measurement import Clock, Comparison, Measurement, Outcome, ShapeTiming
from kbtui.domain.rung import DEFAULT_LADDER, SCREEN
from kbtui.domain.verdict import Proof, Verdict, verified
from kbtui.scheduler.state import RunState

PASSED = verified(1, Proof.GPU)


def state_with(*events: Event) -> RunState:
    state = RunState()
    started = RunStarted(
        "toy-1", "toy", "toy", "0", DATA_SHEETS["a100"], 0, Budget(), ("playbook",), None, ChildEntry.PARENT,
        DEFAULT_LADDER,
    )  # fmt: skip
    for seq, event in enumerate((started, *events)):
        state.apply(Envelope(seq, "", 0.0, 0.0, event))
    return state


def admitted(number: int, structure: str = "first", generator: str = "seed") -> CandidateAdmitted:
    candidate = Candidate(f"c{number:04d}", str(number), (), Origin(generator, "op"), structure, f"no. {number}")
    return CandidateAdmitted(candidate, SCREEN, f"commit{number}")


def answered(*drafts: CandidateAdmitted) -> tuple[Event, ...]:
    return (*drafts, ProposalsMade("playbook", None, len(drafts), 0, False, 0.0))


def timed(
    *comparisons: Comparison, verdict: Verdict = PASSED, unstable: str | None = None, clock: Clock = Clock.MEASURED
) -> RungOutcome:
    timing = ShapeTiming("64", 100.0, 99.0, 101.0, 20)
    return RungOutcome(verdict, 0.1, 0.2, measurement=Measurement(clock, (timing,), comparisons, unstable))


def against(
    other: str, ratio: float, outcome: Outcome, low: float | None = None, high: float | None = None
) -> Comparison:
    return Comparison(other, outcome, ratio, low or ratio - 0.01, high or ratio + 0.01, 0.99, 10, 1)
