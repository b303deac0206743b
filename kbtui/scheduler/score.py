"""S(p, r): how much a candidate p promises, from what rung r found of it. Pure.

In natural logarithms, so that terms add up and 0.01 is about one per cent of speed:

    S(p, r) = speed + stability + headroom + bonus(r)

* speed: log of the lower 95 % bound of its speed over the run's first kernel. The speed is the chained ratio that the
  ledger keeps as ``score`` (docs/decisions/score.md), a geometric mean over the rung's shapes; the bound is that of the
  comparison which was decided, ``low / ratio`` below it.
* stability: minus the half width of its own times' 95 % intervals, mean of logs over the rung's shapes; 0.05 less where
  clocks, throttling or another tenant made the row unstable.
* headroom: minus 0.03 exp(-h / 0.1), where h is the part by which it is above the problem's own bound on the rung's
  first shape: who sits at the bound has nothing left to gain from being refined.
* bonus(r): 0 at the screen, 0.01, 0.02 and 0.03 on the rungs above: the same speed is worth more where more shapes and
  fresh processes stand behind it.

S chooses parents and the order of work. It decides no promotion and no champion: those rest on comparisons alone.
"""

import math
from collections.abc import Sequence
from statistics import fmean

from kbtui.domain.evaluation import RungOutcome
from kbtui.domain.measurement import Comparison, Measurement
from kbtui.domain.score import Score
from kbtui.scheduler.state import RunState, Tried

UNSTABLE = 0.05
HEADROOM, HEADROOM_SCALE = 0.03, 0.1
BONUS_A_RUNG = 0.01


def score_at(tried: Tried, rung: int) -> Score | None:
    """None where the rung did not time it."""
    result = tried.results.get(rung)
    return score_from(rung, result.outcome, result.score) if result else None


def score_from(rung: int, outcome: RungOutcome, over_first: float | None) -> Score | None:
    """S of what a rung found; ``over_first`` is the speed over the first kernel. None where nothing was timed."""
    measurement = outcome.measurement
    if measurement is None or not over_first:
        return None
    speed = math.log(over_first) - _margin(_deciding(measurement))
    return Score(rung, speed, -_spread(measurement), -_at_bound(outcome, measurement), BONUS_A_RUNG * max(rung - 1, 0))


def score_of(tried: Tried) -> Score | None:
    """On the highest rung that timed it."""
    timed = (score_at(tried, rung) for rung in sorted(tried.results, reverse=True))
    return next((s for s in timed if s is not None), None)


def promise(state: RunState, tried: Tried) -> float | None:
    """exp of its S over the incumbent's on the same rung, whose bonus does not count: rungs time different shapes.

    The incumbent of the measure rung promises about 1.01; None where nothing was timed.
    """
    mine = score_of(tried)
    if mine is None:
        return None
    incumbent = state.tried.get(state.incumbents.get(mine.rung, ""))
    held = (score_at(incumbent, mine.rung) if incumbent else None) or mine
    return math.exp(mine.total - held.total + held.bonus)


def score_words(score: Score) -> str:
    """``S +0.632 = speed +0.641, stability -0.002, headroom -0.017, rung +0.010``; as rounded, too, they add up."""
    names = "speed", "stability", "headroom", "rung"
    terms = _adding_up((score.speed, score.stability, score.headroom, score.bonus), score.total)
    told = (f"{name} {term_words(value)}" for name, value in zip(names, terms, strict=True))
    return f"S {term_words(score.total)} = {', '.join(told)}"


def _adding_up(terms: Sequence[float], total: float) -> list[float]:
    """Terms to three places whose sum is the rounded total: rounded down, then up where the most was cut off."""
    exact = [round(1000 * term, 6) for term in terms]
    whole = [math.floor(term) for term in exact]
    most_cut = sorted(range(len(exact)), key=lambda i: whole[i] - exact[i])
    up = most_cut[: round(1000 * round(total, 3)) - sum(whole)]
    return [(down + (i in up)) / 1000 for i, down in enumerate(whole)]


def term_words(value: float) -> str:
    """``+0.632``; never a negative zero."""
    return f"{round(value, 3) + 0.0:+.3f}"


def _deciding(measurement: Measurement) -> Comparison | None:
    return measurement.against("first") or next(iter(measurement.comparisons), None)


def _margin(comparison: Comparison | None) -> float:
    return math.log(comparison.ratio / comparison.low) if comparison and 0 < comparison.low <= comparison.ratio else 0.0


def _spread(measurement: Measurement) -> float:
    spans = [math.log(t.high_us / t.low_us) / 2 for t in measurement.timings if 0 < t.low_us <= t.high_us]
    return (fmean(spans) if spans else 0.0) + (UNSTABLE if measurement.unstable else 0.0)


def _at_bound(outcome: RungOutcome, measurement: Measurement) -> float:
    bound_us = outcome.bound_us
    if not bound_us or not measurement.timings:
        return 0.0
    above = max(measurement.timings[0].device_us / bound_us - 1, 0.0)
    return HEADROOM * math.exp(-above / HEADROOM_SCALE)
