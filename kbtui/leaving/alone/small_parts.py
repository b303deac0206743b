"""Small parts."""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).resolve().parent
CHUNK = 1 << 25

Function = Callable[..., Any]


def as_list(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def double(x: Any, device: str) -> Any:
    if isinstance(x, torch.Tensor):
        return x.to(device=device, dtype=torch.float64 if x.is_floating_point() else x.dtype)
    return x


def relative(difference: float, exact: float) -> float:
    if exact > 0:
        return math.sqrt(difference / exact)
    return 0.0 if difference == 0 else math.inf


def kind_of(x: torch.Tensor) -> torch.Tensor:
    """0 finite, 1 NaN, 2 +Inf, 3 -Inf."""
    return torch.isnan(x).to(torch.int8) + 2 * torch.isposinf(x).to(torch.int8) + 3 * torch.isneginf(x).to(torch.int8)


def chunks(*tensors: torch.Tensor) -> Iterator[tuple[torch.Tensor, ...]]:
    flat = [t.reshape(-1) for t in tensors]
    for start in range(0, flat[0].numel(), CHUNK):
        yield tuple(f[start : start + CHUNK] for f in flat)


def bits_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8) if tensor.numel() else tensor.reshape(-1)


def sizes_of(inputs: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(tuple(x.shape) if isinstance(x, torch.Tensor) else x for x in inputs)


def device_name(device: str) -> str:
    if device == "cuda":
        return str(torch.cuda.get_device_name(0))
    return "the CPU, under Triton's interpreter"


def quiet(_line: str) -> None:
    pass
