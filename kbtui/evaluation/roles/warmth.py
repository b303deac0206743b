"""Effects: makes a child's CUDA context and loads, once, what every call of the harness needs.

torch loads its own kernels lazily, 10 ms each and more; a spare pays for them before its candidate comes. The driver
makes contexts and loads modules for one process of the machine at a time, so nothing is loaded that no call needs.
"""

import contextlib
import time
from collections.abc import Iterator

import torch

from kbtui.evaluation.roles import warm_kernel
from kbtui.evaluation.roles.bench import Bench
from kbtui.evaluation.roles.poison import poison

_state = {"warm": False}
#: By what was done: [seconds, seconds of this process's own CPU time]. The rest it waited, for the driver or stopped.
LAPS: dict[str, list[float]] = {}


@contextlib.contextmanager
def lap(name: str) -> Iterator[None]:
    began, own = time.perf_counter(), time.process_time()
    yield
    LAPS[name] = [round(time.perf_counter() - began, 4), round(time.process_time() - own, 4)]


def warm_cuda() -> None:
    """Context, allocator, fill, copy, events, sleep, flush and a first Triton launch. A second time costs nothing.

    ``TRITON_CACHE_DIR`` must hold what ``primer.prime`` left.
    """
    if _state["warm"]:
        return
    with lap("context"):
        torch.empty(1, device="cuda")
        torch.cuda.synchronize()
    with lap("fill and copy"):
        words = poison(torch.empty(1 << 16, dtype=torch.int16, device="cuda"))
        words.clone().copy_(words)
        torch.cuda.synchronize()
    with lap("first launch"):
        warm_kernel.launch()
        torch.cuda.synchronize()
    with lap("timing"):
        bench = Bench()
        queued_s = bench.warm_up(lambda _: warm_kernel.launch(), 0.0)
        bench.timed(lambda _: warm_kernel.launch(), 2, queued_s, 0, lambda _: None)
    _state["warm"] = True
