"""Says what this process came with."""

import os
import sys
from collections.abc import Callable
from typing import Any


def make(fds: tuple[int, ...]) -> dict[str, Callable[..., Any]]:
    return {"imported": imported, "workers_of": workers_of}


def imported() -> dict[str, Any]:
    import torch

    return {
        "compilers": [name for name in ("torch._dynamo", "torch._inductor.compile_fx") if name in sys.modules],
        "cuda": torch.cuda.is_initialized(),
        "left_in_environment": "PYTORCH_NVML_BASED_CUDA_CHECK" in os.environ,
        "threads": len(os.listdir("/proc/self/task")),
    }


def workers_of(n_threads: int) -> int:
    """What torch.compile takes for its own once a baseline has limited it."""
    from torch._inductor import config

    from kbtui.evaluation.roles.baseline import _limit

    _limit(n_threads)
    return int(config.compile_threads or 0)
