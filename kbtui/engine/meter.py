"""How much of the budget is gone. Effects: reads the monotonic clock."""

import time
from collections.abc import Callable

from kbtui.domain.event import Spent


class Meter:
    """Wall and GPU seconds of a run over all its engines: what was spent before, plus this engine's."""

    def __init__(self, before: Spent, now_s: Callable[[], float] = time.monotonic) -> None:
        self._before_wall_s, self._gpu_s = before.wall_s, before.gpu_s
        self._now_s = now_s
        self._start_s = now_s()

    @property
    def wall_s(self) -> float:
        return self._before_wall_s + self._now_s() - self._start_s

    @property
    def gpu_s(self) -> float:
        return self._gpu_s

    def add_gpu(self, seconds: float) -> None:
        self._gpu_s += seconds
