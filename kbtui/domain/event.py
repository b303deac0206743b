"""Everything that happens in a run, as values. The ledger stores them; the run's state is their fold."""

from dataclasses import dataclass
from enum import StrEnum

from kbtui.domain.candidate import Candidate
from kbtui.domain.device import DeviceSpec
from kbtui.domain.evaluation import ProblemReport, RungOutcome
from kbtui.domain.rung import Rung
from kbtui.domain.score import Score


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run may spend; None is no limit. Seconds of wall time while the engine runs, and of GPU time.

    ``llm_tokens``: tokens a language model may read and write; without any left it is not asked again.
    """

    wall_s: float | None = None
    candidates: int | None = None
    gpu_s: float | None = None
    llm_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds of wall time and of GPU time a run has used, over all its engines."""

    wall_s: float = 0.0
    gpu_s: float = 0.0


class ChildEntry(StrEnum):
    """Where a mutation of a promoted candidate enters the ladder after rung 0."""

    PARENT = "parent"
    SCREEN = "screen"


@dataclass(frozen=True, slots=True)
class RunStarted:
    """``environment``: (name, value) of what its numbers depend on: versions, the driver, the sandbox's protections."""

    run: str
    problem: str
    problem_path: str
    problem_sha: str
    device: DeviceSpec
    seed: int
    budget: Budget
    generators: tuple[str, ...]
    model: str | None
    child_entry: ChildEntry
    ladder: tuple[Rung, ...]
    kernel_path: str | None = None
    unvetted: bool = False
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ProblemOpened:
    report: ProblemReport


@dataclass(frozen=True, slots=True)
class CandidateAdmitted:
    """``entry_rung``: where it goes after rung 0. Its commit is the event commit's second parent."""

    candidate: Candidate
    entry_rung: int
    commit: str


@dataclass(frozen=True, slots=True)
class ProposalsMade:
    """A generator was asked. ``exhausted``: it has nothing more to say about this parent.

    ``tokens``: what a language model read and wrote. ``failed``: no answer, for a reason that may pass.
    """

    generator: str
    parent: str | None
    n_admitted: int
    n_duplicate: int
    exhausted: bool
    wall_s: float
    note: str = ""
    tokens: int = 0
    failed: bool = False


class Decision(StrEnum):
    PROMOTE = "promote"
    PRUNE = "prune"
    REJECT = "reject"
    SET_ASIDE = "set_aside"
    CROWN = "crown"


@dataclass(frozen=True, slots=True)
class Basis:
    """What a decision rests on, in numbers.

    Attributes:
        score: S(p, r) by its terms; None where nothing was timed.
        rival: whom it was compared with, a candidate's id or ``first``; ``rival_score`` is that one's S on this rung.
        ratio, low, high: ``rival's time / its own`` with the 95 % interval.
        spent: on this candidate, on this rung and all below.
        saved: what the rungs above would have cost, by what they cost others in this run on the average; nothing
            where it goes on, or failed, since it would have failed at full fidelity too.
        unpriced: rungs above that nobody has passed yet, whose cost is not in ``saved``.
    """

    score: Score | None = None
    rival: str | None = None
    rival_score: Score | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    spent: Spent = Spent()
    saved: Spent = Spent()
    unpriced: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RungCompleted:
    """A candidate finished a rung: the outcome and the decision made of it, with its reason in words and in numbers.

    ``score`` is the speed in S(p, r): over the run's first kernel, chained through paired ratios. None if not timed.
    ``new_incumbent``: the candidate is now the best seen on this rung. ``basis``: None in runs that did not keep it.
    """

    candidate: str
    rung: int
    outcome: RungOutcome
    decision: Decision
    reason: str
    score: float | None
    new_incumbent: bool
    basis: Basis | None = None


class CommandKind(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    PIN = "pin"
    PRUNE = "prune"
    PROMOTE = "promote"
    HINT = "hint"
    BUDGET = "budget"
    SUBMIT = "submit"


@dataclass(frozen=True, slots=True)
class CommandAccepted:
    """A viewer's or user's command, made an event before the engine acts on it.

    ``argument``: candidate id (pin, prune, promote), text (hint), JSON of Budget (budget), source (submit).
    """

    command_id: int
    kind: CommandKind
    argument: str = ""
    note: str = ""
    parent: str | None = None


class EndReason(StrEnum):
    BUDGET = "budget"
    STOPPED = "stopped"
    EXHAUSTED = "exhausted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RunEnded:
    reason: EndReason
    detail: str


@dataclass(frozen=True, slots=True)
class RunResumed:
    """The engine took the run up again after it ended, stopped or was killed; ``budget`` is the one now in force.

    ``environment`` as in RunStarted, of the machine as it is now.
    """

    budget: Budget
    detail: str
    environment: tuple[tuple[str, str], ...] = ()


Event = (
    RunStarted
    | ProblemOpened
    | CandidateAdmitted
    | ProposalsMade
    | RungCompleted
    | CommandAccepted
    | RunEnded
    | RunResumed
)


@dataclass(frozen=True, slots=True)
class Envelope:
    """An event on the ledger: its place, when, and what the run had spent by then."""

    seq: int
    at: str
    wall_s: float
    gpu_s: float
    event: Event


EVENT_TYPES: dict[str, type] = {
    t.__name__: t
    for t in (
        RunStarted,
        ProblemOpened,
        CandidateAdmitted,
        ProposalsMade,
        RungCompleted,
        CommandAccepted,
        RunEnded,
        RunResumed,
    )
}
