"""The answers of kernels that read only a part of what they reduce. Runs in the vetting role only.

A quarter of a symmetric reduction, scaled up, is the reference itself on inputs whose quarter is repeated over the
whole axis: sums come out four times the quarter's, means and maxima as the quarter's. So nothing need be known of the
operation. Where outputs run along the reduced axis (a softmax), each part of them is computed from its own quarter.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kbtui.evaluation.vetting.reductions import Axis, Function, Kind, Reduction

PARTS = 4


@dataclass(frozen=True, slots=True)
class Lazy:
    """A lazy kernel's name and its answers, in float64; None for an output of which it leaves nothing out."""

    name: str
    outputs: Sequence[torch.Tensor | None]


def lazy_answers(
    function: Function, inputs: Sequence[Any], reductions: Sequence[Reduction], names: Sequence[str]
) -> Iterator[Lazy]:
    """For every reduction that is there at these inputs: a quarter of it in one piece, and every fourth element."""
    for reduction in reductions:
        if not _fits(reduction.axes, inputs):
            continue
        size = _size(reduction.axes[0], inputs)
        what = " and ".join(axis_name(a, names) for a in reduction.axes)
        n_parts = min(PARTS, size)
        match reduction.kind:
            case Kind.SYMMETRIC:
                share = _share(n_parts)
                yield Lazy(f"{share} of {what}", _by_parts(function, inputs, reduction, _pieces(size, n_parts)))
                strided = _by_parts(function, inputs, reduction, _strides(size, n_parts))
                yield Lazy(f"{_every(n_parts)} of {what}", strided)
            case Kind.AFFINE:
                yield Lazy(f"{_share(n_parts)} of {what}", _masked(function, inputs, reduction.axes[0], n_parts))
            case Kind.ORDERED if size >= PARTS:
                ((_, source), *_) = _strides(size, PARTS)
                yield Lazy(f"{_every(PARTS)} of {what}", function(*_gathered(inputs, reduction.axes, source)))
            case Kind.WINDOW if size >= PARTS:
                ((_, source), *_) = _strides(size, 2)
                yield Lazy(f"{_every(2)} of {what}", function(*_gathered(inputs, reduction.axes, source)))


def axis_name(axis: Axis, names: Sequence[str]) -> str:
    """``x[1]``: axis 1 of the input x."""
    i, a = axis
    return f"{names[i] if i < len(names) else f'input {i}'}[{a}]"


def _fits(axes: Sequence[Axis], inputs: Sequence[Any]) -> bool:
    shaped = all(i < len(inputs) and isinstance(inputs[i], torch.Tensor) and a < inputs[i].dim() for i, a in axes)
    return shaped and len({_size(axis, inputs) for axis in axes}) == 1 and _size(axes[0], inputs) > 1


def _size(axis: Axis, inputs: Sequence[Any]) -> int:
    return int(inputs[axis[0]].shape[axis[1]])


def _share(n_parts: int) -> str:
    return {4: "a quarter", 3: "a third", 2: "a half"}[n_parts]


def _every(n_parts: int) -> str:
    return {4: "every fourth", 3: "every third", 2: "every second"}[n_parts]


Part = tuple[torch.Tensor, torch.Tensor]


def _pieces(size: int, n_parts: int) -> list[Part]:
    """By contiguous piece: its places, and for every place of the axis the one in the piece that it is read from."""
    places = torch.arange(size)
    pieces = torch.tensor_split(places, n_parts)
    return [(piece, piece[0] + (places - piece[0]) % len(piece)) for piece in pieces]


def _strides(size: int, n_parts: int) -> list[Part]:
    """The same by every ``n_parts``-th place."""
    places = torch.arange(size)
    parts = []
    for q in range(n_parts):
        own = places[q::n_parts]
        parts.append((own, torch.clamp(places - places % n_parts + q, max=int(own[-1]))))
    return parts


def _by_parts(
    function: Function, inputs: Sequence[Any], reduction: Reduction, parts: Sequence[Part]
) -> list[torch.Tensor]:
    """Each output's part along the axis is computed from its own part of the inputs, other outputs from the first."""
    (_, source), *rest = parts
    answer = function(*_gathered(inputs, reduction.axes, source))
    if all(axis is None for axis in reduction.along):
        return answer
    for own, source in rest:
        part = function(*_gathered(inputs, reduction.axes, source))
        for whole, piece, axis in zip(answer, part, reduction.along, strict=True):
            if axis is not None:
                at = own.to(whole.device)
                whole.index_copy_(axis, at, piece.index_select(axis, at))
    return answer


def _gathered(inputs: Sequence[Any], axes: Sequence[Axis], source: torch.Tensor) -> list[Any]:
    gathered = list(inputs)
    for i, axis in axes:
        gathered[i] = gathered[i].index_select(axis, source.to(gathered[i].device))
    return gathered


def _masked(function: Function, inputs: Sequence[Any], axis: Axis, n_parts: int) -> list[torch.Tensor]:
    """f(0) + n/m (f(x where the part is read, else 0) - f(0)): what the part gives, scaled up."""
    i, a = axis
    x, (piece, _) = inputs[i], _pieces(_size(axis, inputs), n_parts)[0]
    mask = torch.zeros(x.shape[a], dtype=x.dtype, device=x.device)
    mask[piece.to(x.device)] = 1
    read = x * mask.view([-1 if d == a else 1 for d in range(x.dim())])
    changed = list(inputs)
    changed[i] = torch.zeros_like(x)
    zero = function(*changed)
    changed[i] = read
    scale = x.shape[a] / len(piece)
    return [z + scale * (y - z) for y, z in zip(function(*changed), zero, strict=True)]
