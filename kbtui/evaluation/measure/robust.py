"""Location, spread and intervals that a few wild samples cannot move. Pure, standard library only.

Trimmed mean with its winsorised standard error: K. K. Yuen, "The two-sample trimmed t for unequal population
variances", Biometrika 61 (1974). Student's t through the incomplete beta function's continued fraction:
Abramowitz and Stegun 26.5.8 and 26.7.1.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean

TRIM = 0.2


@dataclass(frozen=True, slots=True)
class Location:
    """A robust mean, its standard error and the error's degrees of freedom (0: one sample, no error known)."""

    mean: float
    standard_error: float
    degrees: int


def median(samples: Sequence[float]) -> float:
    """The middle of at least one sample."""
    ordered = sorted(samples)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def trimmed_location(samples: Sequence[float], trim: float = TRIM) -> Location:
    """Yuen's trimmed mean; below five samples nothing is trimmed. Needs at least one sample."""
    ordered = sorted(samples)
    n = len(ordered)
    if n == 1:
        return Location(ordered[0], 0.0, 0)
    cut = int(trim * n)
    kept = ordered[cut : n - cut]
    mean = fmean(kept)
    winsorised = [ordered[cut]] * cut + kept + [ordered[n - cut - 1]] * cut
    centre = fmean(winsorised)
    variance = sum((w - centre) ** 2 for w in winsorised) / (n - 1)
    return Location(mean, math.sqrt(variance / n) / (1 - 2 * cut / n), len(kept) - 1)


def median_interval(samples: Sequence[float], confidence: float = 0.95) -> tuple[float, float, float]:
    """(median, low, high): the distribution-free interval between order statistics, never narrower than asked.

    Below six samples the interval is the whole range, which holds less than 95 %.
    """
    ordered = sorted(samples)
    n = len(ordered)
    outside, term, cut = 0.0, 0.5**n, 0
    while outside + term <= (1 - confidence) / 2 and 2 * (cut + 1) < n:
        outside += term
        cut += 1
        term *= (n - cut + 1) / cut
    edge = max(cut - 1, 0)
    return median(ordered), ordered[edge], ordered[n - 1 - edge]


def t_cdf(t: float, degrees: float) -> float:
    """P(T <= t) for Student's t with ``degrees`` > 0 degrees of freedom."""
    if math.isinf(t):
        return 1.0 if t > 0 else 0.0
    tail = 0.5 * _incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t))
    return 1 - tail if t > 0 else tail


@lru_cache(maxsize=4096)
def t_quantile(p: float, degrees: float) -> float:
    """The t with P(T <= t) = p, 0 < p < 1, by bisection to 1e-9."""
    if p < 0.5:
        return -t_quantile(1 - p, degrees)
    low, high = 0.0, 1.0
    while t_cdf(high, degrees) < p:
        high *= 2
    while high - low > 1e-9 * (1 + high):
        middle = (low + high) / 2
        low, high = (middle, high) if t_cdf(middle, degrees) < p else (low, middle)
    return (low + high) / 2


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularised incomplete beta function I_x(a, b)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    return front / (a * _beta_fraction(a, b, x))


def _beta_fraction(a: float, b: float, x: float) -> float:
    """Value of 1 + d1/(1 + d2/(1 + ...)), by the backward recurrence; 80 terms are more than any t here needs."""
    value = 1.0
    for m in range(80, 0, -1):
        half = m // 2
        if m % 2:
            d = -(a + half) * (a + b + half) * x / ((a + 2 * half) * (a + 2 * half + 1))
        else:
            d = half * (b - half) * x / ((a + 2 * half - 1) * (a + 2 * half))
        value = 1 + d / value
    return value
