"""What one bench found: kernels, their verdicts, times and ratios, PyTorch's times. Pure."""

import math
from dataclasses import dataclass, field
from typing import Any

from kbtui.domain.codec import to_plain
from kbtui.domain.device import DeviceSpec
from kbtui.domain.evaluation import Baseline
from kbtui.domain.measurement import Comparison, Measurement, ShapeTiming
from kbtui.domain.problem import ProblemSpec
from kbtui.domain.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Benched:
    """One kernel. ``samples_us``: every device time taken, by shape; empty where the time is modelled."""

    name: str
    verdict: Verdict
    measurement: Measurement | None = None
    samples_us: dict[str, tuple[float, ...]] = field(default_factory=dict)

    def against(self, other: str) -> Comparison | None:
        return self.measurement.against(other) if self.measurement else None


@dataclass(frozen=True, slots=True)
class BenchReport:
    """Kernels in the order asked for; ``first`` is the problem's own."""

    problem: ProblemSpec
    device: DeviceSpec
    baselines: tuple[Baseline, ...]
    kernels: tuple[Benched, ...]

    def share_of_bound(self, timing: ShapeTiming) -> float:
        """The problem's own bound over the time, 0 to 1: bytes at the data sheet's bandwidth, or flops at its rate."""
        shape = next(s for s in self.problem.shapes if s.name == timing.shape)
        return self.problem.bound_us(shape, self.device) / timing.device_us

    def to_plain(self) -> dict[str, Any]:
        return {
            "problem": self.problem.name,
            "device": to_plain(self.device),
            "clock": self.device.clock.value,
            "baselines": [to_plain(b) for b in self.baselines],
            "kernels": [
                {
                    "kernel": k.name,
                    "verdict": to_plain(k.verdict),
                    "measurement": to_plain(k.measurement) if k.measurement else None,
                    "samples_us": {shape: list(s) for shape, s in k.samples_us.items()},
                }
                for k in self.kernels
            ],
        }


def samples_of(plain: dict[str, Any]) -> dict[str, tuple[float, ...]]:
    """All device times of the candidate in one attachment of raw samples, by shape, microseconds."""
    taken: dict[str, list[float]] = {s: list(v) for s, v in plain.get("alone", {}).items()}
    for process in plain.get("processes", ()):
        for by_shape in process.values():
            for shape, pairs in by_shape.items():
                taken.setdefault(shape, []).extend(t for pair in pairs for t in pair["candidate"])
    return {shape: tuple(times) for shape, times in taken.items()}


def histogram(samples: tuple[float, ...], n_bins: int) -> tuple[tuple[int, ...], float, float]:
    """(counts, low, high): equal bins from the least sample to the 99th percentile; what is slower joins the last.

    A few stragglers would otherwise squeeze everything into one bin.
    """
    ordered = sorted(samples)
    low, high = ordered[0], ordered[min(len(ordered) - 1, math.ceil(0.99 * len(ordered)) - 1)]
    width = (high - low) / n_bins or 1.0
    counts = [0] * n_bins
    for sample in ordered:
        counts[min(n_bins - 1, int((sample - low) / width))] += 1
    return tuple(counts), low, high
