"""The scheduler's constants, in one value, so that a study can vary them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """Thresholds of promotion and the shape of the search.

    Attributes:
        screen_slack: at the screen, a known structure goes on if it might reach this part of the incumbent's speed.
        structure_slack: the same for the best of a structure that was refined fewer than ``refinements`` times.
        refinements: how many candidates a structure gets before it is judged like the others.
        measure_slack: at the measure rung, the best of its structure is profiled once if within this of the incumbent.
        batch: proposals asked for at once.
        confirm_reserve: part of the wall or GPU budget kept for confirming the best.
        stagnation: questions about one structure without a new incumbent before another one is preferred.
    """

    screen_slack: float = 0.99
    structure_slack: float = 0.70
    refinements: int = 6
    measure_slack: float = 0.90
    batch: int = 6
    confirm_reserve: float = 0.12
    stagnation: int = 3


DEFAULT_POLICY = Policy()
