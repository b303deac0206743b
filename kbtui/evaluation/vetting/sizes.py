"""How large a shape's inputs are, and the same shape with fewer rows. Runs in the vetting role only.

Inputs are made on ``meta``. The reference is not run there: some of torch's meta kernels import its whole compiler.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from kbtui.evaluation.reference import LoadedReference
from kbtui.evaluation.vetting.reductions import Kind, Reduction

_WINDOWED = 16
_MOST_ELEMENTS = 1 << 21

Axes = tuple[tuple[int, ...], ...]


def inputs_on_meta(loaded: LoadedReference, dims: Mapping[str, int], distribution: str, dtype: str) -> tuple[Any, ...]:
    """Raises what make_inputs raises there."""
    return loaded.make_inputs(dims, 0, "meta", distribution, dtype=dtype)


def n_bytes(values: Sequence[Any]) -> int:
    return sum(int(x.numel() * x.element_size()) for x in values if isinstance(x, torch.Tensor))


def n_elements(values: Sequence[Any]) -> int:
    return sum(int(x.numel()) for x in values if isinstance(x, torch.Tensor))


def with_fewer_rows(
    loaded: LoadedReference,
    dims: Mapping[str, int],
    rows: int,
    distribution: str,
    dtype: str,
    reductions: Sequence[Reduction],
) -> dict[str, int]:
    """The same sizes, but at most ``rows`` of what one answer does not depend on. Raises what make_inputs raises."""
    kept = dict(dims)
    for name, size in dims.items():
        smaller = _smaller(loaded, kept, name, rows, (distribution, dtype), reductions) if size > rows else None
        if smaller is not None and smaller < size:
            kept[name] = smaller
    return _that_runs(loaded, dims, kept, distribution, dtype)


def _that_runs(
    loaded: LoadedReference, dims: Mapping[str, int], kept: dict[str, int], distribution: str, dtype: str
) -> dict[str, int]:
    """Sizes may be tied to each other, as groups are to channels: where a call fails, one is put back, or all are."""
    changed = [name for name in dims if kept[name] != dims[name]]
    for sizes in (kept, *({**kept, name: dims[name]} for name in changed)):
        if n_elements(inputs_on_meta(loaded, sizes, distribution, dtype)) > _MOST_ELEMENTS:
            continue
        try:
            loaded.reference(*loaded.make_inputs(sizes, 0, "cpu", distribution, dtype=dtype))
        except Exception:
            # Whatever it raises, these sizes are not the problem's.
            continue
        return sizes
    return dict(dims)


def _smaller(
    loaded: LoadedReference,
    dims: Mapping[str, int],
    name: str,
    rows: int,
    how: tuple[str, str],
    reductions: Sequence[Reduction],
) -> int | None:
    """How few of this size do, None where the answer depends on how many there are, or they are tied to others."""
    before = _axes(inputs_on_meta(loaded, dims, *how))
    try:
        after = _axes(inputs_on_meta(loaded, {**dims, name: rows}, *how))
    except Exception:
        # Whatever it raises, this size is not free.
        return None
    kinds = {_kind(axis, reductions) for axis in _changed(before, after)}
    if kinds - {None, Kind.WINDOW} or not kinds:
        return None
    return _WINDOWED if Kind.WINDOW in kinds else rows


def _axes(inputs: tuple[Any, ...]) -> Axes:
    return tuple(tuple(x.shape) if isinstance(x, torch.Tensor) else () for x in inputs)


def _changed(before: Axes, after: Axes) -> list[tuple[int, int]]:
    pairs = enumerate(zip(before, after, strict=True))
    return [(i, a) for i, (x, y) in pairs for a, (n, m) in enumerate(zip(x, y, strict=True)) if n != m]


def _kind(axis: tuple[int, int], reductions: Sequence[Reduction]) -> Kind | None:
    return next((r.kind for r in reductions if axis in r.axes), None)
