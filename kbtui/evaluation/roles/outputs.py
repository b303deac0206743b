"""What a candidate returned: tensors of the exact type, shape and dtype, in memory of their own."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch

from kbtui.domain.verdict import Reason
from kbtui.evaluation.roles.arena import Arena
from kbtui.evaluation.roles.layout import Slot


def as_outputs(result: Any) -> list[Any]:
    """One tensor, or a tuple or list of them, as a list."""
    return list(result) if isinstance(result, (tuple, list)) else [result]


def output_fault(outputs: Sequence[Any], expected: Sequence[Slot], arena: Arena) -> dict[str, str] | None:
    """The first thing wrong with the outputs' kind, as ``reason`` and ``detail``; values are the referee's business."""
    if len(outputs) != len(expected):
        return _fault(Reason.WRONG_TYPE, f"returned {len(outputs)} values, expected {len(expected)}")
    for i, (output, slot) in enumerate(zip(outputs, expected, strict=True)):
        fault = _one(output, slot, arena)
        if fault:
            return fault if len(expected) == 1 else {**fault, "detail": f"output {i}: {fault['detail']}"}
    return _overlap(outputs)


def _one(output: Any, slot: Slot, arena: Arena) -> dict[str, str] | None:
    if type(output) is not torch.Tensor:
        return _fault(Reason.WRONG_TYPE, f"returned {type(output).__name__}, not a torch.Tensor")
    if output.device.type != arena.device:
        return _fault(Reason.WRONG_TYPE, f"is on {output.device.type}, expected {arena.device}")
    if tuple(output.shape) != slot.shape:
        return _fault(Reason.WRONG_SHAPE, f"shape {tuple(output.shape)}, expected {slot.shape}")
    if str(output.dtype) != f"torch.{slot.dtype}":
        return _fault(Reason.WRONG_DTYPE, f"dtype {str(output.dtype)[6:]}, expected {slot.dtype}")
    if output.layout is not torch.strided or not output.is_contiguous():
        return _fault(Reason.WRONG_TYPE, f"strides {tuple(output.stride())} are not contiguous")
    begin, end = _span(output)
    if begin < arena.address + arena.n_bytes and arena.address < end:
        return _fault(Reason.ALIASES_INPUT, "shares memory with an input")
    return None


def _overlap(outputs: Sequence[torch.Tensor]) -> dict[str, str] | None:
    spans = sorted(_span(o) for o in outputs if o.numel())
    for (_, end), (begin, _) in pairwise(spans):
        if begin < end:
            return _fault(Reason.WRONG_TYPE, "two outputs share memory")
    return None


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    return tensor.data_ptr(), tensor.data_ptr() + tensor.numel() * tensor.element_size()


def _fault(reason: Reason, detail: str) -> dict[str, str]:
    return {"reason": reason.value, "detail": detail}
