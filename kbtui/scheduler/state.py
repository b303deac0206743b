"""The state of a run: the fold of its events. Both the engine and the viewer read this and nothing else."""

import json
from dataclasses import dataclass, field

from kbtui.domain.candidate import Candidate, source_sha
from kbtui.domain.codec import from_plain
from kbtui.domain.event import (
    Budget,
    CandidateAdmitted,
    CommandAccepted,
    CommandKind,
    Decision,
    Envelope,
    ProblemOpened,
    ProposalsMade,
    RunEnded,
    RungCompleted,
    RunResumed,
    RunStarted,
)
from kbtui.domain.problem import Problem
from kbtui.domain.rung import COMPILE

#: After so many empty answers in a row about one parent a generator is taken to have nothing more to say about it.
MAX_EMPTY = 3
PERSON = "person"
#: Origins that are admitted one by one, outside a generator's answer.
DIRECT = ("seed", PERSON)


@dataclass(slots=True)
class Tried:
    """One candidate and what became of it. ``results`` are its completed rungs, by rung index.

    ``pinned`` and ``dropped``: a person put it first, or pruned it.
    """

    candidate: Candidate
    commit: str
    entry_rung: int
    admitted_seq: int
    results: dict[int, RungCompleted] = field(default_factory=dict)
    waiting_at: int | None = COMPILE
    pinned: bool = False
    dropped: bool = False

    @property
    def is_submitted(self) -> bool:
        """Whether a person handed it in."""
        return self.candidate.origin.generator == PERSON

    @property
    def last(self) -> RungCompleted | None:
        return self.results[max(self.results)] if self.results else None

    @property
    def score(self) -> float | None:
        """The score at the highest rung that timed it."""
        return next((r.score for _, r in sorted(self.results.items(), reverse=True) if r.score is not None), None)

    @property
    def passed_stage(self) -> int:
        """The highest gate stage it holds a verdict for, -1 for none."""
        return max((r.outcome.verdict.stage for r in self.results.values() if r.outcome.verdict.ok), default=-1)


@dataclass(slots=True)
class Yield:
    """What a generator has brought: candidates, in how many seconds of asking."""

    n_admitted: int = 0
    wall_s: float = 0.0
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Failing:
    """A generator whose last ``times`` questions got no answer; the latest at ``since_s`` seconds of wall time."""

    times: int
    since_s: float
    why: str


@dataclass(slots=True)
class RungSpend:
    wall_s: float = 0.0
    gpu_s: float = 0.0


@dataclass(slots=True)
class RunState:
    """Fold events with ``apply``, in order, from the first (a RunStarted).

    ``all_drafted``: the last answer to a question without a parent brought no structure that was new.
    ``just_proposed``: nothing has happened since a generator answered, so its sources are still being compiled.
    ``gained_seq``: when a structure last brought an incumbent, as the event's number.
    ``empty``: answers in a row without a new candidate, by generator and parent.
    ``open_batch``: candidates of a generator's answer that is not complete yet, by source SHA-256.
    """

    started: RunStarted | None = None
    opened: ProblemOpened | None = None
    budget: Budget = field(default_factory=Budget)
    tried: dict[str, Tried] = field(default_factory=dict)
    open_batch: dict[str, Tried] = field(default_factory=dict)
    seen: dict[str, str] = field(default_factory=dict)
    structures: set[str] = field(default_factory=set)
    incumbents: dict[int, str] = field(default_factory=dict)
    champion: str | None = None
    first: str | None = None
    yields: dict[str, Yield] = field(default_factory=dict)
    exhausted: set[tuple[str, str | None]] = field(default_factory=set)
    empty: dict[tuple[str, str | None], int] = field(default_factory=dict)
    failing: dict[str, Failing] = field(default_factory=dict)
    asked: list[tuple[int, ProposalsMade]] = field(default_factory=list)
    all_drafted: bool = False
    just_proposed: bool = False
    gained_seq: dict[str, int] = field(default_factory=dict)
    user_hints: list[str] = field(default_factory=list)
    spend: dict[int, RungSpend] = field(default_factory=dict)
    commands: list[CommandAccepted] = field(default_factory=list)
    paused: bool = False
    stop_asked: bool = False
    ended: RunEnded | None = None
    seq: int = -1
    wall_s: float = 0.0
    gpu_s: float = 0.0

    def apply(self, envelope: Envelope) -> None:
        self.seq, self.wall_s, self.gpu_s = envelope.seq, envelope.wall_s, envelope.gpu_s
        if not isinstance(envelope.event, RunResumed):  # a kill in between changes no decision
            self.just_proposed = isinstance(envelope.event, ProposalsMade)
        match envelope.event:
            case RunStarted() as event:
                self.started, self.budget = event, event.budget
            case ProblemOpened() as event:
                self.opened = event
            case CandidateAdmitted() as event:
                self._admit(event)
            case ProposalsMade() as event:
                self._proposals(event)
            case RungCompleted() as event:
                self._completed(event)
            case CommandAccepted() as event:
                self._command(event)
            case RunEnded() as event:
                self.ended = event
            case RunResumed() as event:
                self.budget, self.ended, self.stop_asked, self.paused = event.budget, None, False, False

    def waiting(self, rung: int) -> list[Tried]:
        """Candidates queued at a rung: pinned ones first, then whom a person handed in, then in order of admission."""
        queued = [t for t in self.tried.values() if t.waiting_at == rung]
        return sorted(queued, key=lambda t: (not t.pinned, not t.is_submitted, t.admitted_seq))

    def _admit(self, event: CandidateAdmitted) -> None:
        """A generator's candidates count once its answer is complete, so that a kill in between changes no decision."""
        tried = Tried(event.candidate, event.commit, event.entry_rung, self.seq)
        if event.candidate.origin.generator in DIRECT:
            self._enter(tried)
        else:
            self.open_batch[event.candidate.source_sha] = tried

    def _enter(self, tried: Tried) -> None:
        self.tried[tried.candidate.id] = tried
        self.seen[tried.candidate.source_sha] = tried.candidate.id
        self.structures.add(tried.candidate.structure)
        self.first = self.first or tried.candidate.id

    def _proposals(self, event: ProposalsMade) -> None:
        self.asked.append((self.seq, event))
        if event.parent is None:
            self.all_drafted = {t.candidate.structure for t in self.open_batch.values()} <= self.structures
        for tried in self.open_batch.values():
            self._enter(tried)
        self.open_batch = {}
        got = self.yields.setdefault(event.generator, Yield())
        got.n_admitted += event.n_admitted
        got.wall_s += event.wall_s
        got.tokens += event.tokens
        if event.failed:
            before = self.failing.get(event.generator)
            self.failing[event.generator] = Failing(before.times + 1 if before else 1, self.wall_s, event.note)
            return
        self.failing.pop(event.generator, None)
        about = (event.generator, event.parent)
        self.empty[about] = self.empty.get(about, 0) + 1 if event.n_admitted == 0 else 0
        if event.exhausted or self.empty[about] >= MAX_EMPTY:
            self.exhausted.add(about)

    def _completed(self, event: RungCompleted) -> None:
        tried = self.tried[event.candidate]
        tried.results[event.rung] = event
        tried.waiting_at = self._next_rung(tried, event)
        spend = self.spend.setdefault(event.rung, RungSpend())
        spend.wall_s += event.outcome.wall_s
        spend.gpu_s += event.outcome.gpu_s
        if event.new_incumbent:
            self.incumbents[event.rung] = event.candidate
            self.gained_seq[tried.candidate.structure] = self.seq
        if event.decision is Decision.CROWN:
            self.champion = event.candidate

    def _next_rung(self, tried: Tried, event: RungCompleted) -> int | None:
        if event.decision is not Decision.PROMOTE:
            return None
        return max(event.rung + 1, tried.entry_rung)

    def _command(self, event: CommandAccepted) -> None:
        self.commands.append(event)
        tried = self.tried.get(event.argument)
        match event.kind:
            case CommandKind.PAUSE:
                self.paused = True
            case CommandKind.RESUME:
                self.paused = False
            case CommandKind.STOP:
                self.stop_asked = True
            case CommandKind.HINT:
                self.user_hints.append(event.argument)
            case CommandKind.BUDGET:
                self.budget = from_plain(Budget, json.loads(event.argument))
            case CommandKind.PIN if tried:
                tried.pinned = not tried.pinned
            case CommandKind.PRUNE if tried:
                tried.waiting_at, tried.dropped = None, True
            case CommandKind.PROMOTE if tried and tried.last is not None:
                tried.waiting_at = min(tried.last.rung + 1, len(self.started.ladder) - 1) if self.started else None
                tried.pinned, tried.dropped = True, False
            case _:
                pass


def problem_sha(problem: Problem) -> str:
    """SHA-256 over a problem's sources and declaration: a resume refuses another problem under the same name."""
    return source_sha("\0".join((repr(problem.spec), problem.reference_source, problem.kernel_source or "")))
