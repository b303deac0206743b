"""What one evaluation measured: pairs by process, opponent and shape, and the values made of them. Pure."""

from dataclasses import dataclass, field
from typing import Any

from kbtui.domain.measurement import ShapeTiming
from kbtui.evaluation.measure.adjudicate import Evidence
from kbtui.evaluation.measure.loop import PairSamples
from kbtui.evaluation.measure.robust import median, median_interval

#: Pairs of one process: opponent, then shape.
ProcessLog = dict[str, dict[str, list[PairSamples]]]


@dataclass(slots=True)
class MatchLog:
    """Everything timed in one evaluation, process by process. ``alone``: samples taken with no opponent; ``sensors``:
    the GPU's clocks, power and temperature around the blocks, in the order read."""

    shapes: tuple[str, ...]
    processes: list[ProcessLog] = field(default_factory=list)
    alone: dict[str, list[float]] = field(default_factory=dict)
    end_to_end_us: dict[str, float] = field(default_factory=dict)
    sensors: list[dict[str, float]] = field(default_factory=list)

    def evidence(self, opponent: str) -> Evidence:
        """Log ratios against one opponent; as many pairs of each shape as all have."""
        logs = [log[opponent] for log in self.processes if opponent in log]
        times = tuple(median([p.medians_us[1] for log in logs for p in log[s]]) for s in self.shapes)
        return Evidence(self.shapes, times, tuple(_pairs(log, self.shapes) for log in logs))

    def samples_us(self, shape: str) -> list[float]:
        """Every sample of the candidate on one shape."""
        paired = [
            s for log in self.processes for pairs in log.values() for p in pairs.get(shape, []) for s in p.candidate_us
        ]
        return paired + self.alone.get(shape, [])

    def timings(self) -> tuple[ShapeTiming, ...]:
        return tuple(self._timing(s) for s in self.shapes if self.samples_us(s))

    def to_plain(self) -> dict[str, Any]:
        """Raw samples for the attachment: microseconds, in the order taken."""
        return {
            "unit": "us",
            "processes": [
                {
                    opponent: {
                        shape: [{"candidate": p.candidate_us, "other": p.other_us} for p in pairs]
                        for shape, pairs in by_shape.items()
                    }
                    for opponent, by_shape in log.items()
                }
                for log in self.processes
            ],
            "alone": self.alone,
            "end_to_end": self.end_to_end_us,
            "sensors": self.sensors,
        }

    def _timing(self, shape: str) -> ShapeTiming:
        samples = self.samples_us(shape)
        middle, low, high = median_interval(samples)
        return ShapeTiming(shape, middle, low, high, len(samples), self.end_to_end_us.get(shape))


def _pairs(log: dict[str, list[PairSamples]], shapes: tuple[str, ...]) -> tuple[tuple[float, ...], ...]:
    n = min(len(log.get(s, [])) for s in shapes)
    return tuple(tuple(log[s][i].log_ratio for s in shapes) for i in range(n))
