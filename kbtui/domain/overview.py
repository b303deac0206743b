"""A run seen through a window: its landmarks, what waits, the best and the newest, with totals over all of it."""

from dataclasses import dataclass

from kbtui.domain.event import Decision, Envelope


@dataclass(frozen=True, slots=True)
class RungTotal:
    """A rung's evaluations with one decision: how many, and the seconds they took."""

    rung: int
    decision: Decision
    n: int
    wall_s: float
    gpu_s: float


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts over a whole run. ``waiting``: how many candidates wait, by rung."""

    n_candidates: int
    n_events: int
    rungs: tuple[RungTotal, ...]
    waiting: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Window:
    """Events in order: all of them from ``from_seq`` on, and of the candidates named in them every earlier one.

    They can be folded as a whole run's events are. ``from_seq`` is 0 where nothing is left out.
    """

    envelopes: tuple[Envelope, ...]
    from_seq: int
