"""The terms of S(p, r), as they are kept with a decision. How they are found: ``kbtui.scheduler.score``."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Score:
    """The terms of S(p, r), in log units."""

    rung: int
    speed: float
    stability: float
    headroom: float
    bonus: float

    @property
    def total(self) -> float:
        return self.speed + self.stability + self.headroom + self.bonus
