"""Modelled times beside other modelled times: deterministic, so the interval is the ratio itself. Pure."""

import math
from collections.abc import Mapping

from kbtui.domain.measurement import Comparison, Outcome, ShapeRatio, ShapeTiming
from kbtui.evaluation.modelled.time import ModelledTime

#: Modelled times this close are a tie: the model does not resolve more.
TIE = 0.001


def timings(times: Mapping[str, ModelledTime]) -> tuple[ShapeTiming, ...]:
    """Device and end-to-end time are one to the model."""
    return tuple(ShapeTiming(name, t.time_us, t.time_us, t.time_us, 1) for name, t in times.items())


def compare(against: str, mine: Mapping[str, ModelledTime], theirs: Mapping[str, ModelledTime]) -> Comparison:
    """``theirs / mine`` over the shapes of ``mine``; every one of them must be in ``theirs``."""
    ratios = {name: theirs[name].time_us / time.time_us for name, time in mine.items()}
    mean = math.exp(math.fsum(math.log(r) for r in ratios.values()) / len(ratios))
    shapes = tuple(ShapeRatio(name, r, r, r) for name, r in ratios.items())
    return Comparison(against, _outcome(mean), mean, mean, mean, 1.0, n_pairs=1, n_processes=1, shapes=shapes)


def _outcome(ratio: float) -> Outcome:
    if abs(ratio - 1.0) <= TIE:
        return Outcome.TIE
    return Outcome.FASTER if ratio > 1.0 else Outcome.SLOWER
