"""What a candidate showed when it was picked, beside what was confirmed: the winner's curse, in numbers. Pure."""

import math
from dataclasses import dataclass

from kbtui.domain.event import RungCompleted
from kbtui.domain.measurement import Clock
from kbtui.domain.rung import CONFIRM, SCREEN
from kbtui.domain.wording import counted, percent
from kbtui.scheduler.state import Tried


@dataclass(frozen=True, slots=True)
class Shrinkage:
    """Speed over the first kernel as a rung had it, and as confirmed in fresh processes on that rung's own shapes.

    ``screened`` may be chained through an incumbent; ``confirmed`` is always the direct comparison.
    """

    rung: int
    shapes: tuple[str, ...]
    screened: float
    confirmed: float

    @property
    def part(self) -> float:
        """By what part the confirmed value differs; below 0 it shrank."""
        return self.confirmed / self.screened - 1


def shrinkages(tried: Tried) -> tuple[Shrinkage, ...]:
    """One for each rung below that timed it, lowest first.

    None before it is confirmed against the first kernel, and none of modelled times, which have no noise to pick from.
    """
    direct = _confirmed_by_shape(tried.results.get(CONFIRM))
    found = (_shrinkage(tried.results[rung], direct) for rung in sorted(tried.results) if SCREEN <= rung < CONFIRM)
    return tuple(s for s in found if s is not None)


def shrinkage_words(shrinkage: Shrinkage) -> str:
    """``1.45× on rung 1 (1 shape), confirmed 1.41× there: -2.8 %``."""
    where = f"on rung {shrinkage.rung} ({counted(len(shrinkage.shapes), 'shape')})"
    change = percent(1 + shrinkage.part)
    return f"{shrinkage.screened:.2f}× {where}, confirmed {shrinkage.confirmed:.2f}× there: {change}"


def _confirmed_by_shape(result: RungCompleted | None) -> dict[str, float]:
    measurement = result.outcome.measurement if result else None
    met = measurement.against("first") if measurement else None
    if measurement is None or met is None or measurement.clock is not Clock.MEASURED:
        return {}
    if len(measurement.timings) == 1 and not met.shapes:
        return {measurement.timings[0].shape: met.ratio}
    return {s.shape: s.ratio for s in met.shapes}


def _shrinkage(result: RungCompleted, direct: dict[str, float]) -> Shrinkage | None:
    measurement = result.outcome.measurement
    shapes = tuple(t.shape for t in measurement.timings) if measurement else ()
    if not shapes or result.score is None or any(s not in direct for s in shapes):
        return None
    confirmed = math.exp(math.fsum(math.log(direct[s]) for s in shapes) / len(shapes))
    return Shrinkage(result.rung, shapes, result.score, confirmed)
