"""The scheduler with one of its parts taken away, on a recorded pool; and what a pool cannot show, in words.

A part is taken away from what the scheduler sees (labels, answers, comparisons, costs), never from its code.
"""

import copy
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from benchmarks.full_at_once import FullAtOnce
from benchmarks.pool_strategies import Trace, search
from kbtui.domain.candidate import source_sha
from kbtui.domain.device import DeviceSpec
from kbtui.domain.evaluation import Evaluated, EvaluationRequest, ProblemReport
from kbtui.domain.measurement import Comparison, Measurement, Outcome
from kbtui.domain.pool import Pool, PoolCandidate
from kbtui.domain.problem import Problem
from kbtui.engine.ports import Device, SampleSink
from kbtui.evaluation.devices.replay import ReplayDevice
from kbtui.evaluation.devices.replay_draws import RecordedTime, times_of
from kbtui.evaluation.measure.adjudicate import process_sigma

#: With fewer candidates left than this a pool says nothing about a part.
LEAST_CANDIDATES = 12


def with_pool(device: ReplayDevice, change: Callable[[Pool], Pool]) -> ReplayDevice:
    """The device on a changed pool; the costs of rungs that were never recorded stay those of the whole pool."""
    changed = copy.copy(device)
    changed.pool = change(device.pool)
    return changed


def one_structure(pool: Pool) -> Pool:
    """Every candidate under one label, so that only the one fastest is ever kept and refined."""
    return replace(pool, candidates=tuple(replace(c, structure="one") for c in pool.candidates))


def in_any_order(pool: Pool, seed: int) -> Pool:
    """Answers in random order, not the generators' own: what their expertise and the hints are worth."""
    first, *others = pool.candidates
    random.Random(f"order/{seed}").shuffle(others)
    return replace(pool, candidates=(first, *others))


def only(pool: Pool, kept: Callable[[PoolCandidate], bool]) -> Pool:
    """Without some candidates, and without all that were made from them."""
    held: dict[str, PoolCandidate] = {pool.candidates[0].source_sha: pool.candidates[0]}
    for candidate in pool.candidates[1:]:
        if kept(candidate) and (candidate.parent is None or candidate.parent in held):
            held[candidate.source_sha] = candidate
    return replace(pool, candidates=tuple(held.values()))


@dataclass(slots=True)
class Unpaired:
    """No adjudication: a candidate is timed once, in one process, and the number set beside the rival's old one."""

    device: ReplayDevice
    seed: int
    once: dict[tuple[str, int], dict[str, float]] = field(default_factory=dict)
    spec: DeviceSpec = field(init=False)

    def __post_init__(self) -> None:
        self.spec = self.device.spec

    def open(self, problem: Problem) -> ProblemReport:
        return self.device.open(problem)

    def prefetch(self, source: str) -> None: ...

    def close(self) -> None: ...

    def evaluate(self, request: EvaluationRequest, on_sample: SampleSink) -> Evaluated:
        evaluated = self.device.evaluate(request, on_sample)
        measurement = evaluated.outcome.measurement
        if measurement is None:
            return evaluated
        mine = self._time(source_sha(request.source), request.rung.index)
        sources = {o.id: o.source for o in (request.incumbent, request.first) if o}
        if request.first:
            sources["first"] = request.first.source
        found = tuple(
            _by_number(c, mine, self._time(source_sha(sources[c.against]), request.rung.index))
            for c in measurement.comparisons
            if c.against in sources
        )
        told = Measurement(measurement.clock, measurement.timings, found)
        return Evaluated(replace(evaluated.outcome, measurement=told))

    def _time(self, sha: str, rung: int) -> dict[str, float]:
        """What one process shows, once; later comparisons read the same number."""
        if (sha, rung) not in self.once:
            rng = random.Random(f"{self.seed}/{sha}/{rung}/alone")
            times = times_of(self.device.pool.by_sha[sha], rung)
            self.once[sha, rung] = {shape: _drawn_us(time, rng) for shape, time in times.items()}
        return self.once[sha, rung]


def _drawn_us(time: RecordedTime, rng: random.Random) -> float:
    if time.processes:
        return sorted(one := rng.choice(time.processes))[len(one) // 2]
    between = process_sigma(time.timing.device_us) / math.sqrt(2)
    return time.timing.device_us * math.exp(rng.gauss(0.0, between))


def _by_number(played: Comparison, mine: dict[str, float], theirs: dict[str, float]) -> Comparison:
    names = [s.shape for s in played.shapes if s.shape in mine and s.shape in theirs]
    ratio = math.exp(math.fsum(math.log(theirs[n] / mine[n]) for n in names) / max(len(names), 1))
    outcome = Outcome.FASTER if ratio > 1.0 else Outcome.SLOWER
    return replace(played, outcome=outcome, ratio=ratio, low=ratio, high=ratio, confidence=1.0)


@dataclass(frozen=True, slots=True)
class Ablation:
    """``run`` gives a search, or None on a pool that cannot show the part; ``cannot`` says why."""

    name: str
    run: Callable[[ReplayDevice, int], Trace | None]
    cannot: str = ""


def _through(kind: Callable[[ReplayDevice, int], Device]) -> Callable[[ReplayDevice, int], Trace]:
    return lambda device, seed: search(device, seed, through=kind)


def _without_structures(device: ReplayDevice, seed: int) -> Trace:
    return search(with_pool(device, one_structure), seed)


def _any_order(device: ReplayDevice, seed: int) -> Trace:
    return search(with_pool(device, lambda pool: in_any_order(pool, seed)), seed)


def _without_hints(device: ReplayDevice, seed: int) -> Trace | None:
    """Without the mutations that a hint led to. Drafts stay: the playbook makes one of every structure anyway."""
    bare = with_pool(device, lambda pool: only(pool, lambda c: c.origin.hint is None or c.parent is None))
    return search(bare, seed) if len(bare.pool.candidates) >= LEAST_CANDIDATES else None


def _without_rewrites(device: ReplayDevice, seed: int) -> Trace | None:
    if "rewrites" not in device.pool.generators:
        return None
    bare = with_pool(device, lambda pool: only(pool, lambda c: c.origin.generator != "rewrites"))
    return search(bare, seed) if len(bare.pool.candidates) >= LEAST_CANDIDATES else None


ABLATIONS = (
    Ablation("without paired adjudication", _through(Unpaired)),
    Ablation("without structure diversity", _without_structures),
    Ablation("answers in random order", _any_order),
    Ablation("ladder off", _through(lambda device, _seed: FullAtOnce(device))),
    Ablation("without hints", _without_hints, "almost every mutation of this pool answers a hint"),
    Ablation("without diagnosis-directed rewrites", _without_rewrites, "this pool was recorded without rewrites"),
)
