"""How much of the budget is gone. Effects: reads the monotonic clock."""

import time
from collections.abc import Callable

from kbtui.domain.event import Spent


def real_time_passes(_counts: bool) -> None:
    """Nothing to settle: real time has passed by itself."""


class Meter:
    """Wall and GPU seconds of a run over all its engines: what was spent before, plus this engine's.

    ``settle`` makes what a piece of work cost pass on a simulated clock; it does nothing on a real one.
    """

    def __init__(
        self,
        before: Spent,
        now_s: Callable[[], float] = time.monotonic,
        settle: Callable[[bool], None] = real_time_passes,
    ) -> None:
        self._before_wall_s, self._gpu_s = before.wall_s, before.gpu_s
        self._now_s = now_s
        self._start_s = now_s()
        self._settle = settle

    @property
    def wall_s(self) -> float:
        return self._before_wall_s + self._now_s() - self._start_s

    @property
    def gpu_s(self) -> float:
        return self._gpu_s

    def settle(self, counts: bool = True) -> None:
        """A piece of work is complete; ``counts=False``: an engine before this one has paid for it already."""
        self._settle(counts)

    def add_gpu(self, seconds: float) -> None:
        self._gpu_s += seconds
