"""Which of two candidates is faster, with a stated error. Pure.

One observation is the log ratio ``log(other / candidate)`` of an ABBA pair on one shape; above 0 the candidate is
faster. Two noises stand behind the estimate and are treated apart:

* within a process: what the pairs of one process pair show, as Yuen's trimmed mean and its standard error. It is
  looked at several times, so its error rate is divided by the number of looks (Bonferroni).
* between processes: what no number of pairs in one process pair shows, and few process pairs cannot estimate. Their
  sample variance is moderated by a prior (``PRIOR_DEGREES`` pseudo-observations, G. Smyth, "Linear models and empirical
  Bayes methods", 2004) that docs/measurement.md derives from 299 ratios between processes of H200s, 6.8 to 775 us.

The half width of an interval is the root of the sum of both squares, each with its own quantile.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from kbtui.domain.measurement import Comparison, Outcome, ShapeRatio
from kbtui.evaluation.measure.robust import Location, t_cdf, t_quantile, trimmed_location

#: Scale of Student's t by which a side's time moves from process to process: so many microseconds and so large a part.
PROCESS_SIGMA_US, PROCESS_SIGMA_PART, PRIOR_DEGREES = 0.094, 0.0006, 3
#: Correlation of that between shapes timed in the same process.
SHAPES_ALIKE = 0.25
#: Fewest pairs on which one process pair calls a candidate faster: what passes in the first few must not.
FASTER_PAIRS = 6


@dataclass(frozen=True, slots=True)
class Evidence:
    """Log ratios of one comparison.

    Attributes:
        shapes: names, in the order of the innermost tuples.
        time_us: the other side's time on each shape, which scales the noise between processes.
        processes: per process pair, per ABBA pair, per shape: log(other / candidate).
    """

    shapes: tuple[str, ...]
    time_us: tuple[float, ...]
    processes: tuple[tuple[tuple[float, ...], ...], ...]

    @property
    def n_pairs(self) -> int:
        return sum(len(pairs) for pairs in self.processes)

    def of_shape(self, index: int) -> "Evidence":
        picked = tuple(tuple((pair[index],) for pair in pairs) for pairs in self.processes)
        return Evidence((self.shapes[index],), (self.time_us[index],), picked)


@dataclass(frozen=True, slots=True)
class ErrorRates:
    """One-sided chances of a wrong ``faster`` and of a wrong ``slower``; half width within which it is a tie."""

    false_faster: float = 0.005
    false_slower: float = 0.02
    tie: float = 0.005

    def split(self, n_decisions: int) -> "ErrorRates":
        """As each of so many decisions on growing evidence may err, for all of them together to err as often as stated.

        By Bonferroni's inequality, so whatever the evidence has in common. Only ``faster`` is split: evidence grows
        only where the candidate is ahead, from where hardly any comes back to be called ``slower``.
        """
        return replace(self, false_faster=self.false_faster / n_decisions)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Mean log ratio with its two errors and their degrees of freedom."""

    log_ratio: float
    between: float
    between_degrees: int
    within: float
    within_degrees: int

    def half_width(self, tail: float, n_looks: int = 1) -> float:
        """Half of the interval that leaves ``tail`` on each side, corrected for looks at the noise within."""
        between = t_quantile(1 - tail, self.between_degrees) * self.between
        within = t_quantile(1 - tail / n_looks, self.within_degrees) * self.within if self.within_degrees else 0.0
        return math.hypot(between, within)

    def chance_faster(self) -> float:
        """Confidence that the true log ratio is above 0."""
        error = math.hypot(self.between, self.within)
        if error == 0:
            return 0.5 if self.log_ratio == 0 else float(self.log_ratio > 0)
        return t_cdf(self.log_ratio / error, self.between_degrees)


def process_sigma(time_us: float) -> float:
    """Scale of a log ratio from one process pair to the next, on one shape."""
    return math.sqrt(2) * math.hypot(PROCESS_SIGMA_PART, PROCESS_SIGMA_US / max(time_us, 1e-3))


def process_variance(times_us: Sequence[float]) -> float:
    """Square of that scale for the mean log ratio over shapes."""
    scales = [process_sigma(us) for us in times_us]
    apart, alike = sum(s * s for s in scales), sum(scales) ** 2
    return ((1 - SHAPES_ALIKE) * apart + SHAPES_ALIKE * alike) / len(scales) ** 2


def estimate(evidence: Evidence) -> Estimate:
    """Geometric mean over shapes and processes. Needs one process with one pair at least."""
    located = [trimmed_location([fmean(pair) for pair in pairs]) for pairs in evidence.processes]
    n = len(located)
    mean = fmean(place.mean for place in located)
    within = math.sqrt(sum(place.standard_error**2 for place in located)) / n
    prior = process_variance(evidence.time_us)
    spread = sum((place.mean - mean) ** 2 for place in located)
    noise = _excess(spread, located)
    variance = (PRIOR_DEGREES * prior + noise) / (PRIOR_DEGREES + n - 1)
    degrees = sum(place.degrees for place in located)
    return Estimate(mean, math.sqrt(variance / n), PRIOR_DEGREES + n - 1, within, degrees)


def _excess(spread: float, located: Sequence[Location]) -> float:
    """The squared spread between processes that noise within them does not explain."""
    explained = fmean(place.standard_error**2 for place in located) * (len(located) - 1)
    return max(0.0, spread - explained)


def decide(evidence: Evidence, n_looks: int, rates: ErrorRates = ErrorRates()) -> Outcome:
    """FASTER and SLOWER when their interval excludes 0, TIE when it lies within the tie width, else UNCLEAR."""
    found = estimate(evidence)
    if _fewer(evidence, 3):
        return Outcome.UNCLEAR
    if found.log_ratio - found.half_width(rates.false_faster, n_looks) > 0:
        return Outcome.UNCLEAR if _fewer(evidence, FASTER_PAIRS) else Outcome.FASTER
    if found.log_ratio + found.half_width(rates.false_slower, n_looks) < 0:
        return Outcome.SLOWER
    if abs(found.log_ratio) + found.half_width(rates.false_slower, n_looks) < rates.tie:
        return Outcome.TIE
    return Outcome.UNCLEAR


def _fewer(evidence: Evidence, n_pairs: int) -> bool:
    """Whether it is one process pair with fewer pairs."""
    return len(evidence.processes) == 1 and len(evidence.processes[0]) < n_pairs


def compare(against: str, evidence: Evidence, n_looks: int, rates: ErrorRates = ErrorRates()) -> Comparison:
    """The comparison as it is recorded: outcome at the stated error rates, 95 % intervals on every ratio."""
    found = estimate(evidence)
    outcome = decide(evidence, n_looks, rates)
    low, high = _interval(found)
    faster = found.chance_faster()
    sure = {Outcome.FASTER: faster, Outcome.SLOWER: 1 - faster}.get(outcome, _chance_tied(found, rates.tie))
    return Comparison(
        against, outcome, math.exp(found.log_ratio), low, high, sure,
        evidence.n_pairs, len(evidence.processes), shape_ratios(evidence),
    )  # fmt: skip


def shape_ratios(evidence: Evidence) -> tuple[ShapeRatio, ...]:
    found = [estimate(evidence.of_shape(i)) for i in range(len(evidence.shapes))]
    return tuple(
        ShapeRatio(name, math.exp(e.log_ratio), *_interval(e)) for name, e in zip(evidence.shapes, found, strict=True)
    )


def _interval(found: Estimate) -> tuple[float, float]:
    half = found.half_width(0.025)
    return math.exp(found.log_ratio - half), math.exp(found.log_ratio + half)


def _chance_tied(found: Estimate, width: float) -> float:
    error = math.hypot(found.between, found.within)
    if error == 0:
        return float(abs(found.log_ratio) <= width)
    low = t_cdf((-width - found.log_ratio) / error, found.between_degrees)
    return t_cdf((width - found.log_ratio) / error, found.between_degrees) - low


def settled_within(evidence: Evidence) -> bool:
    """Whether more pairs in the last process would not help: its own error is small beside that between processes."""
    last = trimmed_location([fmean(pair) for pair in evidence.processes[-1]])
    scale = math.sqrt(process_variance(evidence.time_us))
    return len(evidence.processes[-1]) >= 4 and last.standard_error < 0.4 * scale
