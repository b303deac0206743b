"""Effects: the trusted role that looks at the GPU first: what it is, and a cache with what every launch needs.

Triton builds a C helper and a launcher at a process's first launch. They are built here once, so that confined
children find them and start no compiler.
"""

import os
from collections.abc import Callable
from typing import Any

import torch


def properties() -> dict[str, Any]:
    """The device's limits as torch reads them. Raises RuntimeError where CUDA cannot start."""
    torch.empty(1, device="cuda")
    # Attributes differ between versions of torch; the engine has the data sheet for what is missing.
    found: Any = torch.cuda.get_device_properties(0)
    return {
        "name": found.name,
        "arch": found.major * 10 + found.minor,
        "n_sms": found.multi_processor_count,
        "sm_clock_mhz": getattr(found, "clock_rate", 0) / 1e3,
        "l2_bytes": found.L2_cache_size,
        "memory_bytes": found.total_memory,
        "shared_per_sm": getattr(found, "shared_memory_per_multiprocessor", 0),
        "shared_per_block": getattr(found, "shared_memory_per_block_optin", 0),
        "registers_per_sm": getattr(found, "regs_per_multiprocessor", 0),
        "max_warps_per_sm": found.max_threads_per_multi_processor // 32,
        "uuid": f"GPU-{found.uuid}" if getattr(found, "uuid", None) else None,
    }


def prime(cache: str) -> float:
    """Fill ``cache`` with the driver helper and the warm-up kernel; returns an empty launch's device time in us."""
    os.environ["TRITON_CACHE_DIR"] = cache
    from kbtui.evaluation.roles import warm_kernel
    from kbtui.evaluation.roles.bench import Bench
    from kbtui.evaluation.roles.warmth import warm_cuda

    warm_cuda()
    bench = Bench()
    queued_s = bench.warm_up(lambda _: warm_kernel.launch(), 0.02)
    samples = bench.timed(lambda _: warm_kernel.launch(), 15, queued_s, -1, lambda _: None)
    return sorted(samples)[len(samples) // 2]


def make(fds: tuple[int, ...]) -> dict[str, Callable[..., Any]]:
    del fds
    return {"properties": properties, "prime": prime}
