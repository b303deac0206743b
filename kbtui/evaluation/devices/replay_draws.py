"""Comparisons between any two recorded candidates, drawn anew by process. Pure, and the same for the same seed.

Each side of a pair is a draw from what was recorded of that candidate alone, so two candidates that never met on the
device can meet here. Where raw samples by process are in the pool, a process is drawn and then its pairs, with
replacement. Where only medians with intervals are, a process moves all its times by one normal deviate of the noise
between processes (``process_sigma``, measured on an H200) and a pair by the noise that its interval implies.
The decision is the one that measurements get: the same looks, the same early stop, the same error rates.
"""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kbtui.domain.measurement import Comparison, Outcome, ShapeTiming
from kbtui.domain.pool import PoolCandidate
from kbtui.domain.rung import Rung
from kbtui.evaluation.measure.adjudicate import Evidence, compare, decide, process_sigma, settled_within
from kbtui.evaluation.measure.further import compare_fresh
from kbtui.evaluation.measure.schedule import calls_per_block, looks

_Z95 = 1.96
#: When a match on several shapes is looked at, and one in fresh processes.
_FEW_LOOKS = (4, 10)
_FRESH_LOOKS = (4, 8)

#: (shape, own time, the other's time, pair number), microseconds.
OnPair = Callable[[str, float, float, int], None]


@dataclass(frozen=True, slots=True)
class RecordedTime:
    """What is known of a candidate on one shape; ``processes`` are empty without raw samples."""

    timing: ShapeTiming
    processes: tuple[tuple[float, ...], ...] = ()

    @property
    def pair_sigma(self) -> float:
        """Standard deviation of the log of one pair's median, from the recorded interval of all of them."""
        timing = self.timing
        n_pairs = max(1.0, timing.n_samples / (2 * calls_per_block(timing.device_us)))
        half_width = math.log(timing.high_us / timing.low_us) / 2 if timing.low_us > 0 else 0.0
        return half_width / _Z95 * math.sqrt(n_pairs)


Times = Mapping[str, RecordedTime]


def times_of(candidate: PoolCandidate, rung: int) -> dict[str, RecordedTime]:
    """Every shape a candidate was ever timed on: as on this rung, else as on the highest that timed it."""
    found: dict[str, RecordedTime] = {}
    for recorded in sorted(candidate.rungs, key=lambda r: (r.rung == rung, r.rung)):
        samples = {s.shape: s.processes for s in recorded.samples}
        for timing in recorded.outcome.measurement.timings if recorded.outcome.measurement else ():
            found[timing.shape] = RecordedTime(timing, samples.get(timing.shape, ()))
    return found


def baseline_times(timings: tuple[ShapeTiming, ...]) -> dict[str, RecordedTime]:
    return {timing.shape: RecordedTime(timing) for timing in timings}


class _Process:
    """One side's child of one process pair."""

    def __init__(self, times: Times, rng: random.Random) -> None:
        self._times, self._rng = times, rng
        self._moved = rng.gauss(0.0, 1.0)
        self._drawn = {shape: rng.choice(t.processes) for shape, t in times.items() if t.processes}

    def time_us(self, shape: str) -> float:
        """Median time of one pair."""
        if shape in self._drawn:
            return self._rng.choice(self._drawn[shape])
        recorded = self._times[shape]
        between = process_sigma(recorded.timing.device_us) / math.sqrt(2) * self._moved
        return recorded.timing.device_us * math.exp(between + self._rng.gauss(0.0, recorded.pair_sigma))


@dataclass(slots=True)
class Match:
    """A candidate in turns with one other, on the shapes that both have been timed on."""

    against: str
    mine: Times
    other: Times
    shapes: tuple[str, ...]
    rung: Rung
    rng: random.Random
    on_pair: OnPair
    _processes: list[tuple[tuple[float, ...], ...]] = field(default_factory=list)

    def play(self, n_process_pairs: int) -> None:
        """So many more, each until its rung has seen enough; draws go on where the last ones ended."""
        for _ in range(n_process_pairs):
            sides = (
                _Process(_only(self.mine, self.shapes), self.rng),
                _Process(_only(self.other, self.shapes), self.rng),
            )
            pairs: list[tuple[float, ...]] = []
            for n_pairs in self._passes:
                while len(pairs) < n_pairs:
                    pairs.append(_pair(sides, self.shapes, len(pairs), self.on_pair))
                if self._enough(self._evidence(tuple(pairs))):
                    break
            self._processes.append(tuple(pairs))

    def comparison(self) -> Comparison:
        """On all that was played so far: one process pair at least."""
        if self.rung.process_pairs > 1:
            return compare_fresh(self.against, self._evidence(), self.rung)
        return compare(self.against, self._evidence(), len(self._passes))

    def _evidence(self, *unfinished: tuple[tuple[float, ...], ...]) -> Evidence:
        times_us = tuple(self.other[s].timing.device_us for s in self.shapes)
        return Evidence(self.shapes, times_us, (*self._processes, *unfinished))

    @property
    def _passes(self) -> tuple[int, ...]:
        if self.rung.process_pairs <= 1 and len(self.shapes) == 1:
            return looks(self.rung.max_pairs)
        few = _FEW_LOOKS if self.rung.process_pairs <= 1 else _FRESH_LOOKS
        return (*(n for n in few if n < self.rung.max_pairs), self.rung.max_pairs)

    def _enough(self, evidence: Evidence) -> bool:
        if self.rung.process_pairs > 1:
            return settled_within(evidence)
        return decide(evidence, len(self._passes)) is not Outcome.UNCLEAR


def _only(times: Times, shapes: tuple[str, ...]) -> Times:
    return {shape: times[shape] for shape in shapes}


def _pair(sides: tuple[_Process, _Process], shapes: tuple[str, ...], pair: int, on_pair: OnPair) -> tuple[float, ...]:
    logs = []
    for shape in shapes:
        own_us, other_us = sides[0].time_us(shape), sides[1].time_us(shape)
        on_pair(shape, own_us, other_us, pair)
        logs.append(math.log(other_us / own_us))
    return tuple(logs)
