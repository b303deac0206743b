"""Ways to spend GPU seconds on a recorded pool, each leaving a trace of what it held as the best and when.

Time is simulated and every cost is the recorded one; every strategy pays the opening of the problem, and none pays for
commits or decisions. ``search`` is the real engine with the real scheduler; the others are what it is compared with.
"""

import math
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from kbtui.domain.candidate import Candidate, Origin
from kbtui.domain.evaluation import EvaluationRequest, Opponent, RungOutcome
from kbtui.domain.event import Budget, ChildEntry, Envelope, RungCompleted, RunStarted, Spent
from kbtui.domain.measurement import LiveSample, Outcome
from kbtui.domain.pool import Pool, PoolCandidate
from kbtui.domain.proposal import Phase, ProposalRequest
from kbtui.domain.rung import CONFIRM, DEFAULT_LADDER, MEASURE, SCREEN, Rung
from kbtui.engine.engine import Engine
from kbtui.engine.memory_ledger import MemoryLedger
from kbtui.engine.meter import Meter
from kbtui.engine.ports import Device
from kbtui.evaluation.devices.replay import ReplayDevice
from kbtui.evaluation.devices.replay_draws import times_of
from kbtui.evaluation.simulated_time import SimulatedTime
from kbtui.generation.replay import recorded_generators
from kbtui.scheduler.best import best_so_far
from kbtui.scheduler.policy import DEFAULT_POLICY, Policy
from kbtui.scheduler.state import RunState, problem_sha

#: Plain successive halving keeps one in so many at each rung (Jamieson and Talwalkar, AISTATS 2016, call it eta).
KEEP_ONE_IN = 3


@dataclass(frozen=True, slots=True)
class Point:
    """A moment of a search: what was spent, how many candidates had been timed, what was held as the best."""

    gpu_s: float
    wall_s: float
    n_candidates: int
    held: str | None
    confirmed: bool


@dataclass(frozen=True, slots=True)
class Crowning:
    """A kernel that took another's place at the measure rung or above, by SHA-256 of the sources."""

    winner: str
    loser: str
    rung: int


@dataclass(frozen=True, slots=True)
class Trace:
    points: tuple[Point, ...]
    admitted: tuple[str, ...] = ()
    crownings: tuple[Crowning, ...] = ()
    gpu_s_by_rung: tuple[tuple[int, float], ...] = ()

    @property
    def last(self) -> Point:
        return self.points[-1]


@dataclass(frozen=True, slots=True)
class Truth:
    """What the pool says of each candidate at full fidelity: log of its speed over the first kernel's.

    Only candidates that were timed on every shape count; ``best`` is the highest among them.
    """

    log_speed: dict[str, float]

    @classmethod
    def of(cls, pool: Pool) -> "Truth":
        shapes = tuple(s.name for s in pool.header.problem.spec.timed_at(CONFIRM))
        times = {c.source_sha: times_of(c, CONFIRM) for c in pool.candidates}
        logs = {
            sha: -math.fsum(math.log(of[s].timing.device_us) for s in shapes) / len(shapes)
            for sha, of in times.items()
            if all(s in of for s in shapes)
        }
        base = logs[pool.candidates[0].source_sha]
        return cls({sha: log - base for sha, log in logs.items()})

    @property
    def best(self) -> float:
        return max(self.log_speed.values())

    def short(self, sha: str | None) -> float:
        """By what part a kernel is slower than the pool's best; infinite for none, or for one never fully timed."""
        return math.expm1(self.best - self.log_speed[sha]) if sha in self.log_speed else math.inf


def _unwatched(sample: LiveSample) -> None: ...


@dataclass(slots=True)
class Lab:
    """A pool with a clock of its own: evaluates candidates and adds up what that took."""

    device: ReplayDevice
    seed: int
    gpu_s: float = 0.0
    wall_s: float = 0.0
    timed: set[str] = field(default_factory=set)
    points: list[Point] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.gpu_s, self.wall_s = self.pool.header.report.gpu_s, self.pool.header.open_wall_s

    @property
    def pool(self) -> Pool:
        return self.device.pool

    @property
    def first(self) -> PoolCandidate:
        return self.pool.candidates[0]

    def evaluate(self, candidate: PoolCandidate, rung: int, held: PoolCandidate | None = None) -> RungOutcome:
        """On a rung, against the one held, else against the first kernel."""
        theirs = Opponent("held", held.source) if held else None
        first = Opponent("first", self.first.source) if candidate is not self.first else None
        request = EvaluationRequest("it", candidate.source, DEFAULT_LADDER[rung], self.seed, -1, theirs, first)
        outcome = self.device.evaluate(request, _unwatched).outcome
        self.gpu_s += outcome.gpu_s
        self.wall_s += outcome.wall_s
        self.timed.add(candidate.source_sha)
        return outcome

    def fails_below(self, candidate: PoolCandidate) -> bool:
        """Whether it was found wrong on some rung; then that is paid for, and no more."""
        wrong = next((r for r in candidate.rungs if not r.outcome.verdict.ok), None)
        if wrong is not None:
            self.evaluate(candidate, wrong.rung)
        return wrong is not None

    def note(self, held: PoolCandidate | None, confirmed: bool) -> None:
        sha = held.source_sha if held else None
        self.points.append(Point(self.gpu_s, self.wall_s, len(self.timed), sha, confirmed))

    def trace(self) -> Trace:
        return Trace(tuple(self.points), tuple(self.timed))


def search(
    device: ReplayDevice,
    seed: int,
    *,
    child_entry: ChildEntry = ChildEntry.PARENT,
    policy: Policy = DEFAULT_POLICY,
    budget: Budget | None = None,
    generators: tuple[str, ...] | None = None,
    ladder: tuple[Rung, ...] = DEFAULT_LADDER,
    through: Callable[[ReplayDevice, int], Device] = lambda device, seed: device,
) -> Trace:
    """The real engine on the pool. ``through`` may put something between it and the device."""
    pool, problem = device.pool, device.pool.header.problem
    names = generators or pool.generators
    device.time = SimulatedTime()
    ledger = MemoryLedger()
    begin = RunStarted("study", problem.spec.name, problem.path, problem_sha(problem), device.spec, seed,
                       budget or Budget(), names, None, child_entry, ladder)  # fmt: skip
    ledger.append(begin, 0.0, 0.0)
    watch = _Watch()
    meter = Meter(Spent(), device.time.now_s, device.time.settle)
    made = recorded_generators(names, pool, device.time.owe)
    Engine(problem, ledger, through(device, seed), made, lambda s, a: (), meter, watch.told, policy).run()
    state = RunState()
    for envelope in ledger.log:
        state.apply(envelope)
    admitted = tuple(t.candidate.source_sha for t in state.tried.values())
    by_rung = tuple((rung, spend.gpu_s) for rung, spend in sorted(state.spend.items()))
    return Trace(tuple(watch.points), admitted, tuple(watch.crownings), by_rung)


@dataclass(slots=True)
class _Watch:
    """Notes after each event what the run holds as its best, and who took whose place."""

    points: list[Point] = field(default_factory=list)
    crownings: list[Crowning] = field(default_factory=list)
    held: dict[int, str] = field(default_factory=dict)

    def told(self, envelope: Envelope, state: RunState) -> None:
        best = best_so_far(state)
        sha = best.candidate.source_sha if best else None
        timed = sum(1 for t in state.tried.values() if t.results)
        self.points.append(Point(envelope.gpu_s, envelope.wall_s, timed, sha, state.champion is not None))
        event = envelope.event
        if isinstance(event, RungCompleted) and event.new_incumbent and event.rung >= MEASURE:
            winner = state.tried[event.candidate].candidate.source_sha
            if event.rung in self.held:
                self.crownings.append(Crowning(winner, self.held[event.rung], event.rung))
            self.held[event.rung] = winner


def full_fidelity(device: ReplayDevice, seed: int, order: Iterable[str]) -> Trace:
    """Every candidate on the confirm rung at once, against the best so far, in the order given (SHA-256)."""
    lab = Lab(device, seed)
    held: PoolCandidate | None = None
    for sha in order:
        candidate = lab.pool.by_sha[sha]
        if not lab.fails_below(candidate):
            outcome = lab.evaluate(candidate, CONFIRM, held)
            if held is None or _beats(outcome, "held"):
                held = candidate
        lab.note(held, held is not None)
    return lab.trace()


def _beats(outcome: RungOutcome, whom: str) -> bool:
    met = outcome.measurement.against(whom) if outcome.measurement else None
    return met is not None and met.outcome is Outcome.FASTER


def halving(device: ReplayDevice, seed: int) -> Trace:
    """Plain successive halving: all candidates in random order, the best third of each rung goes on to the next.

    It may take any candidate at once, though its parent was never tried: the pool is a list to it.
    """
    lab = Lab(device, seed)
    alive = list(lab.pool.candidates)
    random.Random(f"halving/{seed}").shuffle(alive)
    for rung in (SCREEN, MEASURE, CONFIRM):
        speed: dict[str, float] = {}
        for candidate in alive:
            if rung == SCREEN and lab.fails_below(candidate):
                continue
            speed[candidate.source_sha] = _over_first(lab.evaluate(candidate, rung))
            best = max(speed, key=lambda sha: speed[sha])
            if rung > SCREEN:
                lab.note(lab.pool.by_sha[best], rung == CONFIRM and len(speed) == len(alive))
        ranked = sorted(speed, key=lambda sha: -speed[sha])
        alive = [lab.pool.by_sha[sha] for sha in ranked[: math.ceil(len(ranked) / KEEP_ONE_IN)]]
    return lab.trace()


def _over_first(outcome: RungOutcome) -> float:
    """Its measured speed over the first kernel; one where that is what was timed."""
    met = outcome.measurement.against("first") if outcome.measurement else None
    return met.ratio if met else 1.0


def hill_climb(device: ReplayDevice, seed: int) -> Trace:
    """Greedy: asks about the kernel it holds, measures the answers in turn, moves to the first that is faster.

    Where a kernel has no more children it takes the next draft; it measures on the measure rung, in pairs against what
    it holds, and confirms once, at the end.
    """
    lab = Lab(device, seed)
    held = lab.first
    lab.evaluate(held, MEASURE)
    lab.note(held, False)
    climbing = _Climb(device, seed)
    while (candidate := climbing.next_of(held)) is not None:
        if not lab.fails_below(candidate) and _beats(lab.evaluate(candidate, MEASURE, held), "held"):
            held = candidate
        lab.note(held, False)
    lab.evaluate(held, CONFIRM)
    lab.note(held, True)
    return lab.trace()


class _Climb:
    """The answers of the pool's generators, one at a time: about what is held, then drafts."""

    def __init__(self, device: ReplayDevice, seed: int) -> None:
        self._pool, self._seed = device.pool, seed
        self._generators = recorded_generators(device.pool.generators, device.pool, lambda _s: None)
        self._seen = {device.pool.candidates[0].source_sha}

    def next_of(self, held: PoolCandidate) -> PoolCandidate | None:
        found = next((sha for about in (held, None) for sha in self._answers(about)), None)
        if found is None:
            return None
        self._seen.add(found)
        return self._pool.by_sha[found]

    def _answers(self, about: PoolCandidate | None) -> Iterator[str]:
        for generator in self._generators.values():
            for proposal in generator.propose(self._request(about)):
                yield next(c.source_sha for c in self._pool.candidates if c.source == proposal.source)

    def _request(self, about: PoolCandidate | None) -> ProposalRequest:
        header = self._pool.header
        parent = Candidate("it", about.source_sha, (), Origin("", ""), about.structure, "") if about else None
        phase = Phase.NARROW if about else Phase.COARSE
        return ProposalRequest(header.problem, header.report.family, header.device, parent,
                               about.source if about else None, None, (), (), frozenset(self._seen), phase, 1,
                               self._seed)  # fmt: skip
