"""Which axes of a reference's inputs it reduces, found by asking it. Runs in the vetting role only.

Nothing is read off the source: axes are perturbed to see what depends on them, and permuted, alone and together, to
see which are contracted with each other. All in float64, on a small shape.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import torch

from kbtui.evaluation.roles.outputs import as_outputs

Function = Callable[..., list[torch.Tensor]]
Axis = tuple[int, int]

AGREES = 1e-9
_MAX_TOGETHER = 3
_MAX_TRIALS = 400
_FEWEST = 4


class Kind(StrEnum):
    """SYMMETRIC: the order along the axes does not matter. AFFINE: the answer is an affine function of that input.
    WINDOW: neighbours along the axis meet in an output, its ends do not. ORDERED: anything else."""

    SYMMETRIC = "symmetric"
    AFFINE = "affine"
    WINDOW = "window"
    ORDERED = "ordered"


@dataclass(frozen=True, slots=True)
class Reduction:
    """Axes, as (input, axis), that are reduced together. ``along``: by output, the axis that runs with them."""

    kind: Kind
    axes: tuple[Axis, ...]
    along: tuple[int | None, ...] = ()


def in_double(reference: Callable[..., Any]) -> Function:
    """The reference with floating inputs and outputs in float64."""

    def evaluated(*inputs: Any) -> list[torch.Tensor]:
        return [o.double() for o in as_outputs(reference(*map(doubled, inputs)))]

    return evaluated


def doubled(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def find_reductions(reference: Callable[..., Any], inputs: Sequence[Any], seed: int = 0) -> tuple[Reduction, ...]:
    """The reductions that show at these inputs; an axis shorter than 4 only where the answer is affine in its input."""
    return tuple(_Search(in_double(reference), [doubled(x) for x in inputs], seed).found())


class _Search:
    def __init__(self, function: Function, inputs: list[Any], seed: int) -> None:
        self.function, self.inputs = function, inputs
        self.answer = function(*inputs)
        self.generator = torch.Generator(self.answer[0].device).manual_seed(seed)
        self.n_trials = 0

    def found(self) -> Iterator[Reduction]:
        reduced = [a for a in self._axes() if self._reduces(a)]
        covered: set[Axis] = set()
        for axis in reduced:
            if axis not in covered and (group := self._symmetric(axis, reduced)) is not None:
                covered.update(group.axes)
                yield group
        for axis in reduced:
            if axis not in covered and self._affine(axis[0]):
                covered.add(axis)
                yield Reduction(Kind.AFFINE, (axis,))
        for axis in self._axes():
            if axis in covered or self._size(axis) < _FEWEST:
                continue
            if axis in reduced:
                yield Reduction(Kind.ORDERED, (axis,))
            elif self._windows(axis):
                yield Reduction(Kind.WINDOW, (axis,))

    def _axes(self) -> list[Axis]:
        return [(i, a) for i, x in enumerate(self.inputs) if _is_float(x) for a in range(x.dim()) if x.shape[a] > 1]

    def _size(self, axis: Axis) -> int:
        return int(self.inputs[axis[0]].shape[axis[1]])

    def _reduces(self, axis: Axis) -> bool:
        """Whether one output depends on the first, the middle and the last place of the axis."""
        size = self._size(axis)
        return self._meet(axis, sorted({0, size // 2, size - 1}))

    def _windows(self, axis: Axis) -> bool:
        middle = self._size(axis) // 2
        return self._meet(axis, [middle - 1, middle]) or self._meet(axis, [middle, middle + 1])

    def _meet(self, axis: Axis, places: Sequence[int]) -> bool:
        changed = [self._changed(axis, place) for place in places if place < self._size(axis)]
        return any(bool(torch.stack(of_output).all(dim=0).any()) for of_output in zip(*changed, strict=True))

    def _changed(self, axis: Axis, place: int) -> list[torch.Tensor]:
        """Where outputs change when the slice at that place does: up, down (for maxima) or a little."""
        x = self.inputs[axis[0]]
        step = 4 * float(x.abs().max()) + 1
        masks = [torch.zeros(y.shape, dtype=torch.bool, device=y.device) for y in self.answer]
        for change in (step, -step, None):
            moved = x.clone()
            window = moved.select(axis[1], place)
            noise = torch.randn(window.shape, generator=self.generator, device=x.device, dtype=x.dtype)
            window.add_(noise if change is None else change)
            for mask, old, new in zip(masks, self.answer, self._with({axis[0]: moved}), strict=True):
                mask |= (new - old).abs() > AGREES * old.abs()
        return masks

    def _symmetric(self, axis: Axis, reduced: list[Axis]) -> Reduction | None:
        size = self._size(axis)
        if size < _FEWEST:
            return None
        others = [a for a in (*reduced, *self._whole_number_axes()) if a != axis and self._size(a) == size]
        for n_others in range(min(_MAX_TOGETHER, len(others) + 1)):
            for chosen in itertools.combinations(others, n_others):
                along = self._permuted((axis, *chosen), size)
                if along is not None:
                    return Reduction(Kind.SYMMETRIC, (axis, *chosen), along)
        return None

    def _whole_number_axes(self) -> list[Axis]:
        """Class labels and indices run along an axis too, and cannot be perturbed."""
        tensors = ((i, x) for i, x in enumerate(self.inputs) if isinstance(x, torch.Tensor) and not _is_float(x))
        return [(i, a) for i, x in tensors for a in range(x.dim())]

    def _permuted(self, axes: tuple[Axis, ...], size: int) -> tuple[int | None, ...] | None:
        """By output, the axis along which a permutation of ``axes`` permutes it, None where it changes nothing."""
        self.n_trials += 1
        if self.n_trials > _MAX_TRIALS:
            return None
        order = torch.randperm(size, generator=self.generator, device=self.answer[0].device)
        changed: dict[int, torch.Tensor] = {}
        for i, axis in axes:
            changed[i] = changed.get(i, self.inputs[i]).index_select(axis, order)
        try:
            answers = self._with(changed)
        except (RuntimeError, IndexError, ValueError):
            return None
        found = [_runs_along(old, new, order) for old, new in zip(self.answer, answers, strict=True)]
        return None if any(f is False for f in found) else tuple(f if isinstance(f, int) else None for f in found)

    def _affine(self, i: int) -> bool:
        """Whether f(a + 2b) - f(0) is (f(a) - f(0)) + 2 (f(b) - f(0)) in this input."""
        x = self.inputs[i]
        y = torch.randn(x.shape, generator=self.generator, device=x.device, dtype=x.dtype)
        at = [self._with({i: v}) for v in (torch.zeros_like(x), y, x + 2 * y)]
        return all(
            agree(both - zero, (one - zero) + 2 * (other - zero))
            for one, zero, other, both in zip(self.answer, *at, strict=True)
        )

    def _with(self, changed: dict[int, torch.Tensor]) -> list[torch.Tensor]:
        return self.function(*[changed.get(i, x) for i, x in enumerate(self.inputs)])


def agree(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Within rounding of float64, relative to the largest value."""
    if a.shape != b.shape:
        return False
    if not a.numel():
        return True
    first, second = torch.nan_to_num(a), torch.nan_to_num(b)
    largest = float(first.abs().max()) or 1.0
    return float((first - second).abs().max()) <= AGREES * largest and bool(torch.equal(a.isnan(), b.isnan()))


def _runs_along(old: torch.Tensor, new: torch.Tensor, order: torch.Tensor) -> int | bool | None:
    """None: unchanged; an axis: permuted along it; False: another answer."""
    if agree(old, new):
        return None
    axes = (a for a in range(old.dim()) if old.shape[a] == len(order))
    return next((a for a in axes if agree(old.index_select(a, order), new)), False)


def _is_float(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.is_floating_point() and x.dim() > 0 and x.numel() > 0
