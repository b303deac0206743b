"""A stand-in for the timing loop where there is no GPU: the host's clock, no flush, no events."""

import time
from collections.abc import Callable
from typing import Any


class HostBench:
    def warm_up(self, call: Callable[[int], Any], at_least_s: float, around: Any) -> float:
        call(0)
        return 0.0

    def timed(
        self, call: Callable[[int], Any], n_calls: int, queue_s: float, keep_index: int, keep: Any, around: Any
    ) -> list[float]:
        samples = []
        for i in range(n_calls):
            with around(i):
                began = time.perf_counter()
                result = call(i)
                samples.append((time.perf_counter() - began) * 1e6)
            if i == keep_index:
                keep(result)
        return samples

    def back_to_back(self, call: Callable[[int], Any], n_calls: int) -> tuple[float, float]:
        began = time.perf_counter()
        for i in range(n_calls):
            call(i)
        us = (time.perf_counter() - began) * 1e6 / n_calls
        return us, us
