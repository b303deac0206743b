"""Effects: times calls on the device's own clock, with a cold L2, and back to back on the host's.

A block is: a device-side sleep long enough for the host to queue everything, then per call a read of twice the L2,
an event, the call, an event. So neither the flush nor the launch's latency is in the window, and a 6 us kernel is
timed as evenly as a 600 us one.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

Call = Callable[[int], Any]
Keep = Callable[[Any], None]
#: What surrounds one call, outside its window.
Around = Callable[[int], contextlib.AbstractContextManager[None]]


def nothing(_: int) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()


WARM_CALLS = 3
SLEEP_MARGIN = 1.5
SLEEP_LOW_S, SLEEP_HIGH_S = 100e-6, 60e-3
#: No data-centre GPU clocks higher, so a sleep is never shorter than asked.
CYCLES_PER_S = 2.0e9


class Bench:
    """Timing state of one process on one device: the buffer that is read to empty the L2."""

    def __init__(self) -> None:
        properties = torch.cuda.get_device_properties(0)
        self._flush_buffer = torch.zeros(max(2 * properties.L2_cache_size, 1 << 20) // 4, device="cuda")
        self._sink = torch.zeros((), device="cuda")

    def flush(self) -> None:
        """Read twice the L2, so that nothing of the inputs is left in it and nothing dirty is either."""
        torch.sum(self._flush_buffer, dim=0, out=self._sink)

    def warm_up(self, call: Call, at_least_s: float, around: Around = nothing) -> float:
        """Call until warm by count and by time; returns the host's seconds to queue one timed call."""
        torch.cuda.synchronize()
        begin = time.perf_counter()
        n = 0
        while n < WARM_CALLS or time.perf_counter() - begin < at_least_s:
            call(n)
            torch.cuda.synchronize()
            n += 1
        return self._queue_seconds(call, around)

    def timed(
        self,
        call: Call,
        n_calls: int,
        queue_s: float,
        keep_index: int,
        keep: Keep,
        around: Around = nothing,
    ) -> list[float]:
        """Device microseconds of ``n_calls`` calls; call ``i`` gets copy ``i`` of the inputs.

        ``keep`` receives the result of call ``keep_index``, outside the window, to be checked.
        """
        sleep_s = SLEEP_MARGIN * queue_s * n_calls
        for _ in range(3):
            samples, hidden = self._block(call, n_calls, sleep_s, keep_index, keep, around)
            if hidden or sleep_s >= SLEEP_HIGH_S:
                break
            sleep_s = 2 * max(sleep_s, SLEEP_LOW_S)
        return samples

    def back_to_back(self, call: Call, n_calls: int) -> tuple[float, float]:
        """(host, device) microseconds a call, launches included, warm L2."""
        begin, end = _event(), _event()
        torch.cuda.synchronize()
        began = time.perf_counter()
        begin.record()
        for i in range(n_calls):
            call(i)
        end.record()
        torch.cuda.synchronize()
        host_us = (time.perf_counter() - began) * 1e6 / n_calls
        return host_us, begin.elapsed_time(end) * 1e3 / n_calls

    def _block(
        self, call: Call, n_calls: int, sleep_s: float, keep_index: int, keep: Keep, around: Around
    ) -> tuple[list[float], bool]:
        events = [(_event(), _event()) for _ in range(n_calls)]
        sleep_s = min(max(sleep_s, SLEEP_LOW_S), SLEEP_HIGH_S)
        torch.cuda._sleep(int(sleep_s * CYCLES_PER_S))  # type: ignore[no-untyped-call]
        for i, (begin, end) in enumerate(events):
            with around(i):
                self.flush()
                begin.record()
                result = call(i)
                end.record()
            if i == keep_index:
                keep(result)
            del result
        hidden = not events[0][0].query()  # type: ignore[no-untyped-call]
        torch.cuda.synchronize()
        return [begin.elapsed_time(end) * 1e3 for begin, end in events], hidden

    def _queue_seconds(self, call: Call, around: Around) -> float:
        torch.cuda.synchronize()
        began = time.perf_counter()
        for i in range(WARM_CALLS):
            with around(i):
                self.flush()
                _event().record()
                call(i)
                _event().record()
        queued_s = (time.perf_counter() - began) / WARM_CALLS
        torch.cuda.synchronize()
        return queued_s


def rotating(function: Callable[..., Any], copies: Sequence[Sequence[Any]]) -> Call:
    """The function on copy ``i`` modulo their number, gradients off."""

    def call(i: int) -> Any:
        return function(*copies[i % len(copies)])

    return call


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
