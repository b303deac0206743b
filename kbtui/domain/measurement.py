"""Times of a candidate and what they say beside another's."""

from dataclasses import dataclass
from enum import StrEnum


class Clock(StrEnum):
    """Where a time came from. The two are never compared with each other."""

    MEASURED = "measured"
    MODELLED = "modelled"


class Outcome(StrEnum):
    """What a comparison decided about the candidate."""

    FASTER = "faster"
    SLOWER = "slower"
    TIE = "tie"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class ShapeTiming:
    """Time of one call on one shape, in microseconds.

    ``low_us``/``high_us`` bound the median with 95 % confidence (equal to it where the time is modelled).
    ``device_us`` is the device's clock around the call with a cold L2; ``end_to_end_us`` is the host's,
    back to back, launch included; None where nothing was measured.
    """

    shape: str
    device_us: float
    low_us: float
    high_us: float
    n_samples: int
    end_to_end_us: float | None = None


@dataclass(frozen=True, slots=True)
class ShapeRatio:
    """``other / candidate`` on one shape: above 1 the candidate is faster. With its 95 % interval."""

    shape: str
    ratio: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """The candidate against another, interleaved.

    Attributes:
        against: a candidate's id, ``eager``, ``compile`` or ``first`` (the problem's first kernel).
        ratio: geometric mean over shapes of ``other time / candidate time``; above 1 is faster.
        low, high: 95 % interval of ``ratio``.
        confidence: that ``outcome`` is right, 0 to 1.
    """

    against: str
    outcome: Outcome
    ratio: float
    low: float
    high: float
    confidence: float
    n_pairs: int
    n_processes: int
    shapes: tuple[ShapeRatio, ...] = ()


@dataclass(frozen=True, slots=True)
class Measurement:
    """All times of one candidate at one rung. ``unstable`` says why the numbers should be doubted, if so."""

    clock: Clock
    timings: tuple[ShapeTiming, ...]
    comparisons: tuple[Comparison, ...] = ()
    unstable: str | None = None

    def against(self, other: str) -> Comparison | None:
        return next((c for c in self.comparisons if c.against == other), None)


@dataclass(frozen=True, slots=True)
class LiveSample:
    """One timed sample as it arrives, for the live pane; never read by a decision."""

    candidate: str
    against: str
    shape: str
    candidate_us: float
    other_us: float
    pair: int
    max_pairs: int
