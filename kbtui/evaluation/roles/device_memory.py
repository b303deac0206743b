"""Effects: what the allocator of a candidate's process keeps of a GPU's memory: asking the driver for it is slow.

The driver serves such requests one after the other, and behind children that are getting their contexts.
"""

import contextlib

import torch

#: Parts of the device's memory: what may stay cached from one shape to the next, and what a spare may keep at hand.
_KEPT_SHARE, _RESERVED_SHARE = 1 / 32, 1 / 64
#: Blocks of the allocator's pool for small tensors.
_SMALL_BYTES, _N_SMALL = 1 << 20, 4


def reserve(n_bytes: int) -> None:
    """Have so much at hand, as far as there is much of it. Larger tensors are cut from one block."""
    with contextlib.suppress(torch.cuda.OutOfMemoryError):
        small = [torch.empty(_SMALL_BYTES, dtype=torch.uint8, device="cuda") for _ in range(_N_SMALL)]
        large = torch.empty(min(n_bytes, int(_whole_bytes() * _RESERVED_SHARE)), dtype=torch.uint8, device="cuda")
        del small, large


def give_back(everything: bool) -> None:
    """What is cached and not in use: where it is much, or all of it."""
    if everything or torch.cuda.memory_reserved() > _whole_bytes() * _KEPT_SHARE:
        torch.cuda.empty_cache()


def _whole_bytes() -> int:
    return int(torch.cuda.get_device_properties(0).total_memory)
