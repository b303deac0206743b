"""What the viewer knows at one moment: the run's state, its journal, the heartbeat, samples and commands.

Of a long run it knows a window: the newest candidates and those that matter, with totals over all of them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kbtui.domain.event import CommandAccepted, CommandKind, Decision, Envelope, RungCompleted
from kbtui.domain.measurement import Clock, LiveSample
from kbtui.domain.overview import Totals
from kbtui.domain.problem import ProblemSpec
from kbtui.domain.proposal import Hint
from kbtui.domain.rung import MEASURE
from kbtui.scheduler.state import RungSpend, RunState, Tried
from kbtui.tui.source import CommandRow, EngineStatus

#: An engine that holds the lock and has not beaten for so long is said to be silent, in seconds.
SILENT_AFTER_S = 15.0
_SAMPLES_KEPT = 600


@dataclass(frozen=True, slots=True)
class Delta:
    """What one read of the store brought. ``samples_to`` is the id to read on from.

    ``after_seq``: the event it goes on from, -1 at a run's first.
    ``from_seq``: events before it were left out, but for those of candidates that are named; ``totals`` go with that.
    """

    run: str
    envelopes: tuple[Envelope, ...]
    engine: EngineStatus | None
    samples: tuple[LiveSample, ...]
    samples_to: int
    commands: tuple[CommandRow, ...]
    version: int
    from_seq: int = 0
    totals: Totals | None = None
    after_seq: int = -1


@dataclass(frozen=True, slots=True)
class Older:
    """More of a run's past, in order; ``from_seq`` as in a delta, None where it stays where it was."""

    run: str
    envelopes: tuple[Envelope, ...]
    from_seq: int | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A new best: when, which, its score over the first kernel, and whether it was crowned by it."""

    wall_s: float
    gpu_s: float
    candidate: str
    score: float
    crowned: bool


@dataclass(slots=True)
class Asking:
    """A command that this viewer has asked for and not seen in the store yet; ``id`` is -1 until it is inserted."""

    kind: CommandKind
    argument: str
    id: int = -1


@dataclass(slots=True)
class Moment:
    """The fold of deltas. Only the screen's thread applies them, so views may read it without a lock.

    Attributes:
        touched: per candidate, the sequence number of the last event about it.
        journal: the run's events in order, for the log.
        samples: the newest candidate's samples, oldest first.
        asking: what this viewer asked for and the store has not shown it yet: a second key must know of the first.
        steps: each new best of the measuring rungs, where a single lucky screening does not count.
        from_seq: before this event only candidates that matter are known; 0 where the whole run is.
        totals: counts over the whole run, where only a part of it is known.
        problem: the problem's declaration, where its folder can be read here; hints: the advice there is.
    """

    run: str
    state: RunState = field(default_factory=RunState)
    touched: dict[str, int] = field(default_factory=dict)
    journal: list[Envelope] = field(default_factory=list)
    engine: EngineStatus | None = None
    samples: list[LiveSample] = field(default_factory=list)
    samples_to: int = 0
    commands: tuple[CommandRow, ...] = ()
    asking: list[Asking] = field(default_factory=list)
    steps: list["Step"] = field(default_factory=list)
    from_seq: int = 0
    totals: Totals | None = None
    problem: ProblemSpec | None = None
    hints: tuple[Hint, ...] = ()

    def apply(self, delta: Delta) -> None:
        """Take in a delta; one that was read on from events that are not known here is left out.

        It is of a reading that was given up, and the reading that took its place brings everything.
        """
        if delta.envelopes and delta.after_seq > self.state.seq:
            return
        if not self.journal:
            self.from_seq = delta.from_seq
        self.totals = delta.totals
        self.fold(e for e in delta.envelopes if e.seq > self.state.seq)
        self.engine, self.commands, self.samples_to = delta.engine, delta.commands, delta.samples_to
        for sample in delta.samples:
            if self.samples and self.samples[-1].candidate != sample.candidate:
                self.samples.clear()
            self.samples.append(sample)
        del self.samples[:-_SAMPLES_KEPT]
        self._take_totals()

    def add(self, older: Older) -> None:
        """Take in more of the past: everything known is folded again, in order. It is none before anything is known."""
        if not self.journal:
            return
        found = {e.seq: e for e in (*older.envelopes, *self.journal)}
        self.state, self.touched, self.journal, self.steps = RunState(), {}, [], []
        self.fold(found[seq] for seq in sorted(found))
        self.from_seq = self.from_seq if older.from_seq is None else older.from_seq
        self._take_totals()

    def _take_totals(self) -> None:
        """What was spent on rungs, where the events at hand do not tell."""
        if self.totals is not None and self.from_seq:
            self.state.spend = {}
            for t in self.totals.rungs:
                spend = self.state.spend.setdefault(t.rung, RungSpend())
                spend.wall_s += t.wall_s
                spend.gpu_s += t.gpu_s

    @property
    def n_candidates(self) -> int:
        """How many the run has, known here or not."""
        return self.totals.n_candidates if self.totals is not None and self.from_seq else len(self.state.tried)

    @property
    def n_events(self) -> int:
        return self.state.seq + 1

    @property
    def waiting(self) -> Mapping[int, int]:
        """How many candidates of the run wait, by rung."""
        if self.totals is not None and self.from_seq:
            return Counter(dict(self.totals.waiting))
        return Counter(t.waiting_at for t in self.state.tried.values() if t.waiting_at is not None)

    @property
    def decided(self) -> Mapping[tuple[int, Decision], int]:
        """How many evaluations of the run ended so, by rung and decision."""
        if self.totals is not None and self.from_seq:
            return Counter({(t.rung, t.decision): t.n for t in self.totals.rungs})
        return Counter((r.rung, r.decision) for t in self.state.tried.values() for r in t.results.values())

    def fold(self, envelopes: Iterable[Envelope]) -> None:
        for envelope in envelopes:
            self.state.apply(envelope)
            self.journal.append(envelope)
            candidate = subject_candidate(envelope)
            if candidate is not None:
                self.touched[candidate] = envelope.seq
            match envelope.event:
                case RungCompleted(rung=rung, score=float() as score, new_incumbent=True) as event if rung >= MEASURE:
                    crowned = event.decision is Decision.CROWN
                    self.steps.append(Step(envelope.wall_s, envelope.gpu_s, event.candidate, score, crowned))

    @property
    def known(self) -> bool:
        """Whether the run's first event has been read."""
        return self.state.started is not None

    @property
    def clock(self) -> Clock | None:
        return self.state.started.device.clock if self.state.started else None

    @property
    def engine_here(self) -> bool:
        """An engine is alive and works on this run."""
        engine = self.engine
        return engine is not None and engine.alive and engine.run == self.run

    @property
    def goes_on(self) -> bool:
        """The search goes on, or is about to begin; not so where it has ended or its engine is gone."""
        return self.state.ended is None and (self.engine_here or not self.known)

    @property
    def running(self) -> tuple[str, int] | None:
        """The candidate being evaluated and its rung."""
        if not self.engine_here or self.engine is None or self.state.ended is not None:
            return None
        candidate, rung = self.engine.candidate, self.engine.rung
        return (candidate, rung) if candidate in self.state.tried and rung is not None and candidate else None

    @property
    def wall_s(self) -> float:
        """Wall seconds spent, carried on between heartbeats while the engine works."""
        beat = self.engine.wall_s if self.engine is not None and self.engine.run == self.run else 0.0
        working = self.engine_here and self.state.ended is None and not self.state.paused
        carried = (self.engine.beat_age_s or 0.0) if working and self.engine is not None and beat > 0 else 0.0
        return max(self.state.wall_s, beat + min(carried, SILENT_AFTER_S))

    @property
    def gpu_s(self) -> float:
        beat = self.engine.gpu_s if self.engine is not None and self.engine.run == self.run else 0.0
        return max(self.state.gpu_s, beat)

    @property
    def pending(self) -> tuple[CommandRow, ...]:
        """Commands that were asked for and are not on the ledger yet, as they were asked."""
        done = {c.command_id for c in self.state.commands}
        known = {c.id for c in self.commands}
        own = [a for a in self.asking if a.id not in known]
        return tuple(c for c in (*self.commands, *own) if c.id not in done)

    def inserted(self, kind: CommandKind, argument: str, command_id: int | None) -> None:
        """What was being asked has this id now; None where it could not be asked."""
        mine = next((a for a in self.asking if (a.kind, a.argument, a.id) == (kind, argument, -1)), None)
        if mine is not None and command_id is None:
            self.asking.remove(mine)
        elif mine is not None:
            mine.id = command_id if command_id is not None else -1


def subject_candidate(envelope: Envelope) -> str | None:
    """The candidate an event is about, if it is about one."""
    match envelope.event:
        case RungCompleted(candidate=candidate):
            return candidate
        case CommandAccepted(kind=CommandKind.PIN | CommandKind.PRUNE | CommandKind.PROMOTE, argument=argument):
            return argument
        case _:
            found = getattr(envelope.event, "candidate", None)
            return getattr(found, "id", None)


def children_of(state: RunState, candidate: str) -> Sequence[Tried]:
    return [t for t in state.tried.values() if candidate in t.candidate.parents]
