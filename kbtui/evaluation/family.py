"""The family of operation a reference belongs to, from the tensor operations it was traced into. Pure.

A family says which expert structures apply; None means that only rewrites and language models do.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operation:
    """One traced operation: its name (``mm``, ``_softmax``), its tensor inputs' shapes, its output's, its dims."""

    name: str
    inputs: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]
    dims: tuple[int, ...] = ()


_PRODUCTS = frozenset({"mm", "addmm", "bmm", "baddbmm", "matmul", "linear"})
_SQUARES = frozenset({"pow", "square", "mul"})
_ROOTS = frozenset({"sqrt", "rsqrt"})


def family_of(operations: Sequence[Operation]) -> str | None:
    """``row_softmax``, ``channel_rms_norm``, ``mat_vec``, ``linear_relu_div``, ``attention``, ``conv`` or None."""
    names = {op.name for op in operations}
    products = [op for op in operations if op.name in _PRODUCTS]
    if any("convolution" in name for name in names):
        return "conv"
    if any("attention" in name for name in names) or (len(products) == 2 and _softmax_of(operations)):
        return "attention"
    if "mv" in names or any(_is_mat_vec(op) for op in products):
        return "mat_vec" if len(operations) <= 4 else None
    if len(products) == 1:
        return "linear_relu_div"
    if products:
        return None
    softmax = _softmax_of(operations)
    if softmax is not None:
        return "row_softmax" if softmax.dims in ((-1,), (len(softmax.output) - 1,)) else None
    return "channel_rms_norm" if _is_rms_norm(operations) else None


def _softmax_of(operations: Sequence[Operation]) -> Operation | None:
    """A softmax, fused or written out as maximum, exponential, sum and division."""
    for op in operations:
        if op.name in ("_softmax", "softmax", "_safe_softmax"):
            return op
    names = {op.name for op in operations}
    if "exp" in names and "div" in names and names & {"amax", "max"}:
        sums = [op for op in operations if op.name == "sum"]
        return Operation("softmax", sums[0].inputs, sums[0].inputs[0], sums[0].dims) if sums else None
    return None


def _is_mat_vec(op: Operation) -> bool:
    return bool(op.output) and op.output[-1] == 1 and any(len(shape) >= 2 and shape[-1] > 1 for shape in op.inputs)


def _is_rms_norm(operations: Sequence[Operation]) -> bool:
    """A mean of squares over one dimension and a root, and no mean that is subtracted."""
    names = {op.name for op in operations}
    means = [op for op in operations if op.name in ("mean", "sum") and len(op.dims) == 1]
    return bool(names & _SQUARES and names & _ROOTS and len(means) == 1) and "sub" not in names
