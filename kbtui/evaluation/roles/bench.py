"""Effects: times calls on the device's own clock, with a cold L2, and back to back on the host's.

A block is: a device-side sleep long enough for the host to stay ahead of the device, then per call a read of twice the
L2, an event, the call, an event. So neither the flush nor the launch's latency is in the window, and a 6 us kernel is
timed as evenly as a 600 us one.
"""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class _Block:
    """``ahead``: the host was, at every call; ``call_s``: device seconds a call, flushes included."""

    samples_us: list[float]
    ahead: bool
    call_s: float


def lead_s(queue_s: float, call_s: float, n_calls: int) -> float:
    """How long the device must wait before the first of ``n_calls`` so that it never waits for the host after that.

    Queueing takes the host ``queue_s`` a call; the device works ``call_s`` on each, at least.
    """
    return queue_s + max(0.0, queue_s - call_s) * (n_calls - 1)


class Bench:
    """Timing state of one process on one device: the buffer that is read to empty the L2."""

    def __init__(self) -> None:
        properties = torch.cuda.get_device_properties(0)
        self._flush_buffer = torch.zeros(max(2 * properties.L2_cache_size, 1 << 20) // 4, device="cuda")
        self._sink = torch.zeros((), device="cuda")
        #: Device seconds that a call takes at least, its flush included; 0 while that is not known.
        self._call_s = 0.0

    def flush(self) -> None:
        """Read twice the L2, so that nothing of the inputs is left in it and nothing dirty is either."""
        torch.sum(self._flush_buffer, dim=0, out=self._sink)

    def warm_up(self, call: Call, at_least_s: float, around: Around = nothing) -> float:
        """Call until warm by count and by time; returns the host's seconds to queue one timed call."""
        torch.cuda.synchronize()
        self._call_s = 0.0
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
        sleep_s = lead_s(SLEEP_MARGIN * queue_s, self._call_s, n_calls)
        for _ in range(3):
            block = self._block(call, n_calls, sleep_s, keep_index, keep, around)
            if block.ahead:
                self._call_s = min(self._call_s or block.call_s, block.call_s)
            if block.ahead or sleep_s >= SLEEP_HIGH_S:
                break
            sleep_s = 2 * max(sleep_s, SLEEP_LOW_S)
        return block.samples_us

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

    def _block(self, call: Call, n_calls: int, sleep_s: float, keep_index: int, keep: Keep, around: Around) -> _Block:
        events = [(_event(), _event()) for _ in range(n_calls)]
        ahead = True
        sleep_s = min(max(sleep_s, SLEEP_LOW_S), SLEEP_HIGH_S)
        torch.cuda._sleep(int(sleep_s * CYCLES_PER_S))  # type: ignore[no-untyped-call]
        for i, (begin, end) in enumerate(events):
            with around(i):
                self.flush()
                begin.record()
                result = call(i)
                end.record()
            # Had the device passed the first event by now, it may have waited for the launch inside the window.
            ahead = ahead and not begin.query()  # type: ignore[no-untyped-call]
            if i == keep_index:
                keep(result)
            del result
        torch.cuda.synchronize()
        whole_ms = events[0][0].elapsed_time(events[-1][1])
        return _Block([begin.elapsed_time(end) * 1e3 for begin, end in events], ahead, whole_ms / 1e3 / n_calls)

    def _queue_seconds(self, call: Call, around: Around) -> float:
        """The median of a few: the first may do what is done once. A block whose host falls behind is taken again."""
        torch.cuda.synchronize()
        taken = []
        for i in range(WARM_CALLS):
            began = time.perf_counter()
            with around(i):
                self.flush()
                _event().record()
                call(i)
                _event().record()
            taken.append(time.perf_counter() - began)
        torch.cuda.synchronize()
        return sorted(taken)[WARM_CALLS // 2]


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
