"""Effects: fills memory with a NaN that no honest kernel writes, so that what a kernel left unwritten shows.

One 16-bit pattern is a quiet NaN in fp16, bf16, fp32 and fp64 when repeated; its payload tells it from a computed NaN.
"""

import math
from collections.abc import Iterable

import torch

PATTERN = 0x7FFA
_WORDS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def poison(tensor: torch.Tensor) -> torch.Tensor:
    """Fill a dense tensor in place; one whose bytes are odd in number is left alone. Returns it."""
    if tensor.element_size() in _WORDS and tensor.numel():
        flat = torch.as_strided(tensor, (tensor.numel(),), (1,)) if _dense(tensor) else None
        if flat is not None and not tensor.is_complex():
            flat.view(_WORDS[tensor.element_size()]).fill_(_word(tensor.element_size()))
    return tensor


def is_poison(tensor: torch.Tensor) -> torch.Tensor:
    """Where a floating-point tensor still holds the pattern."""
    return tensor.view(_WORDS[tensor.element_size()]) == _word(tensor.element_size())


def poison_free_blocks(sizes: Iterable[int], device: str, copies: int = 3) -> None:
    """Leave freed allocator blocks of these sizes (bytes) full of NaN, for the next torch.empty to get."""
    blocks = [
        poison(torch.empty(max(1, math.ceil(n / 2)), dtype=torch.int16, device=device))
        for n in sizes
        for _ in range(copies)
    ]
    del blocks


def _word(n_bytes: int) -> int:
    return sum(PATTERN << (16 * i) for i in range(n_bytes // 2))


def _dense(tensor: torch.Tensor) -> bool:
    spans = sorted((stride, size) for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1)
    expected = 1
    for stride, size in spans:
        if stride != expected:
            return False
        expected *= size
    return True
