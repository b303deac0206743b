"""A search with the ladder or without it: what it held as its best, when, and how good that was. Effects: a device."""

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.full_at_once import FIRST
from benchmarks.six.search import GENERATORS
from hints import load_hints
from kbtui.domain.candidate import source_sha
from kbtui.domain.evaluation import EvaluationRequest, Opponent
from kbtui.domain.event import Budget, ChildEntry, Envelope, ProblemOpened, RungCompleted, RunStarted, Spent
from kbtui.domain.measurement import LiveSample
from kbtui.domain.problem import Problem
from kbtui.domain.rung import CONFIRM, DEFAULT_LADDER, PROFILE, SCREEN
from kbtui.engine.engine import Engine
from kbtui.engine.memory_ledger import MemoryLedger
from kbtui.engine.ports import Device
from kbtui.engine.replaying import generators_on, meter_on, problem_on
from kbtui.engine.session import hint_chooser
from kbtui.engine.spec import RunSpec
from kbtui.errors import UsageError
from kbtui.evaluation.devices import open_device
from kbtui.problems import load_problem
from kbtui.scheduler.best import best_so_far
from kbtui.scheduler.state import RunState, problem_sha


@dataclass(slots=True)
class Searched:
    """What one search held as its best after each event: (wall s, GPU s, the kernel's SHA-256); and how it ended.

    ``full``: scores at full fidelity, by SHA-256; ``n_timed``: evaluations that timed something; ``open_wall_s``: what
    opening took, within its time.
    """

    points: list[tuple[float, float, str]] = field(default_factory=list)
    full: dict[str, float] = field(default_factory=dict)
    n_timed: int = 0
    open_wall_s: float = 0.0
    state: RunState = field(default_factory=RunState)
    sources: dict[str, str] = field(default_factory=dict)

    def note(self, envelope: Envelope, state: RunState, all_full: bool) -> float | None:
        """Returns the score at full fidelity, if one came with it. Who is all at full fidelity holds the best of it."""
        self.state, score = state, self._scored(envelope, state, all_full)
        if isinstance(envelope.event, ProblemOpened):
            self.open_wall_s = envelope.wall_s
        best = best_so_far(state)
        held = max(self.full, key=self.full.__getitem__, default=None) if all_full else None
        held = held or (best.candidate.source_sha if best else None)
        if held is not None:
            self.points.append((envelope.wall_s, envelope.gpu_s, held))
        return score

    def _scored(self, envelope: Envelope, state: RunState, all_full: bool) -> float | None:
        event = envelope.event
        if not isinstance(event, RungCompleted) or event.rung < SCREEN or event.score is None:
            return None
        self.n_timed += 1
        if not (all_full or event.rung == CONFIRM) or not event.outcome.verdict.ok:
            return None
        return self.full.setdefault(state.tried[event.candidate].candidate.source_sha, event.score)

    def held(self) -> tuple[str, ...]:
        """Every kernel that was ever its best, by SHA-256, the most recent first."""
        return tuple(dict.fromkeys(sha for _, _, sha in reversed(self.points)))


@contextlib.contextmanager
def opened_once(key: str, workspace: Path, name: str, seed: int) -> Iterator[tuple[Device, Problem]]:
    """A device of its own in a workspace of its own, on which the problem was open and its first kernel confirmed.

    What only the first to do so pays for is paid then: files read from disk, the driver's helpers, the first kernel's
    compilation, PyTorch's first calls, Nsight Compute's start. On a simulated clock that takes no time.
    Raises UsageError where the first kernel is not right.
    """
    device = open_device(key, workspace)
    try:
        problem = problem_on(device, load_problem(name))
        first, meter = first_of(problem), meter_on(device, Spent())
        device.open(problem)
        for rung in (PROFILE, CONFIRM):
            request = EvaluationRequest("c0001", first.source, DEFAULT_LADDER[rung], seed, -1, None, None)
            verdict = device.evaluate(request, _unwatched).outcome.verdict
        if not verdict.ok:
            told = f"{problem.spec.name}'s first kernel is {verdict.kind}: {verdict.reason}: {verdict.detail[:120]}"
            raise UsageError(told, "speedups are over it: mend kernel.py")
        meter.settle(counts=False)
        yield device, problem
    finally:
        device.close()


def first_of(problem: Problem) -> Opponent:
    if problem.kernel_source is None:
        raise UsageError(f"{problem.spec.name} has no first kernel", "speedups are over one: give it a kernel.py")
    return Opponent(FIRST, problem.kernel_source)


def _unwatched(sample: LiveSample) -> None: ...


def search(
    device: Device,
    problem: Problem,
    seed: int,
    seconds: float,
    through: Device | None = None,
    until: float = math.inf,
) -> Searched:
    """``through``: behind which the device is; ``until``: a score at full fidelity at which it is interrupted."""
    ledger, searched = MemoryLedger(), Searched()
    begin = RunStarted(
        "ladder", problem.spec.name, problem.path, problem_sha(problem), device.spec, seed, Budget(wall_s=seconds),
        tuple(GENERATORS.split(",")), None, ChildEntry.PARENT, DEFAULT_LADDER,
    )  # fmt: skip
    ledger.append(begin, 0.0, 0.0)

    def narrate(envelope: Envelope, state: RunState) -> None:
        score = searched.note(envelope, state, all_full=through is not None)
        if score is not None and score >= until:
            engine.interrupt("as good as the other")

    engine = Engine(
        problem, ledger, through or device,
        generators_on(device, begin, RunSpec("", problem.path, seed=seed)),
        hint_chooser(problem, load_hints()), meter_on(device, Spent()), narrate,
    )  # fmt: skip
    engine.run()
    searched.sources = {source_sha(source): source for source in ledger.blobs.values()}
    return searched


@dataclass(frozen=True, slots=True)
class Judged:
    """A kernel that a search held as its best, and that neither search measured at full fidelity itself.

    ``score``: its speedup over the first kernel, measured so when both were over; None where ``fault`` says why not.
    """

    search: str
    candidate: str
    source_sha: str
    score: float | None
    fault: str = ""


def judged(
    device: Device, problem: Problem, seed: int, searches: Mapping[str, Searched], seconds: float
) -> tuple[Judged, ...]:
    """Search by search, the most recent best first; none is begun after ``seconds``, by the device's clock."""
    first, meter = first_of(problem), meter_on(device, Spent())
    known = {source_sha(first.source)}.union(*(searched.full for searched in searches.values()))
    found = []
    for name, searched in searches.items():
        for sha in searched.held():
            if sha in known:
                continue
            known.add(sha)
            score, fault = None, "not measured: the time for it was over"
            if meter.wall_s < seconds:
                score, fault = _measured(device, first, seed, searched.sources[sha])
                meter.settle()
            found.append(Judged(name, searched.state.seen[sha], sha, score, fault))
    return tuple(found)


def _measured(device: Device, first: Opponent, seed: int, source: str) -> tuple[float | None, str]:
    """Its score, or None and what was wrong."""
    name = source_sha(source)[:12]
    asked = EvaluationRequest(name, source, DEFAULT_LADDER[CONFIRM], seed, -1, None, first)
    outcome = device.evaluate(asked, _unwatched).outcome
    met = outcome.measurement.against(FIRST) if outcome.measurement else None
    if outcome.verdict.ok and met is not None:
        return met.ratio, ""
    return None, f"{outcome.verdict.reason}: {outcome.verdict.detail}"[:200] if not outcome.verdict.ok else "not timed"
