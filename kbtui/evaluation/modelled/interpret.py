"""Run a few programs of each launch under Triton's interpreter and record what they do. Effects: patches Triton.

Only addresses, masks, integers and control flow are computed for real: loads of floating-point values give zeros,
dots are not multiplied and nothing is stored, so tensors may be of any size and their memory is never touched.
For the tracing child only, where ``TRITON_INTERPRET=1`` was set before Triton was imported.
"""

import builtins
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter as ti

from kbtui.evaluation.modelled.recorder import Extent, LaunchRecorder
from kbtui.evaluation.modelled.trace import LaunchTrace

#: Launches of one kernel with one grid that are traced one by one; further ones count as the last.
MAX_TRACED_ALIKE = 3

_SFU = {np.exp, np.exp2, np.log, np.log2, np.sin, np.cos, np.sqrt}
#: CUDA-core instructions of an operation that is not one instruction (division: reciprocal and Newton steps).
_ALU_COST = {np.divide: 8.0, np.fmod: 8.0}


class CallRecorder:
    """Collects the launches of one call."""

    def __init__(self) -> None:
        self._traces: list[LaunchTrace] = []
        self._alike: dict[tuple[object, ...], int] = {}
        self._tensors: dict[int, int] = {}
        self._repeats: dict[int, float] = {}
        self.current: LaunchRecorder | None = None

    def extents(self, values: list[Any]) -> list[Extent]:
        found: dict[int, Extent] = {}
        for value in values:
            if hasattr(value, "data_ptr"):
                storage = ti._unwrap_tensor(value).untyped_storage()
                start = storage.data_ptr()
                number = self._tensors.setdefault(start, len(self._tensors))
                found[start] = Extent(number, start, storage.nbytes())
        return list(found.values())

    def repeat_of(self, key: tuple[object, ...]) -> bool:
        """Whether enough launches like this one were traced; if so it counts as one more of the last."""
        self._alike[key] = self._alike.get(key, 0) + 1
        if self._alike[key] <= MAX_TRACED_ALIKE:
            return False
        last = max(i for i, t in enumerate(self._traces) if (t.kernel, t.grid) == key)
        self._repeats[last] = self._repeats.get(last, 1.0) + 1.0
        return True

    def add(self, trace: LaunchTrace) -> None:
        self._traces.append(trace)

    def launches(self) -> tuple[LaunchTrace, ...]:
        return tuple(replace(t, count=self._repeats.get(i, 1.0)) for i, t in enumerate(self._traces))


@contextmanager
def recording(calls: CallRecorder) -> Iterator[None]:
    """Every Triton launch in this block is sampled into ``calls`` instead of run."""
    undo: list[tuple[Any, str, Any]] = []

    def patch(owner: Any, name: str, value: Any) -> None:
        undo.append((owner, name, inspect.getattr_static(owner, name)))
        setattr(owner, name, value)

    patch(ti, "GridExecutor", _executor(calls))
    patch(ti, "_patch_lang_tensor", _with_indices_of_any_rank(ti._patch_lang_tensor))
    _patch_builder(patch, calls)
    _patch_reductions(patch, calls)
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        for owner, name, value in reversed(undo):
            setattr(owner, name, value)


def _with_indices_of_any_rank(real: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """Triton 3.6 keeps scalars as arrays of one element, of which numpy 2.4 makes no integer."""

    def patched(tensor: Any, scope: Any) -> None:
        real(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(np.reshape(self.handle.data, -1)[0]))

    return patched


def _executor(calls: CallRecorder) -> type:
    class SamplingExecutor(ti.GridExecutor):  # type: ignore[misc]
        """Runs the sampled programs only, on the arguments as they are."""

        def __call__(self, *args: Any, **kwargs: Any) -> None:
            warps, stages = int(kwargs.get("num_warps", 4)), int(kwargs.get("num_stages", 3))
            known = inspect.getfullargspec(self.fn).args
            bound = inspect.getcallargs(self.fn, *args, **{k: v for k, v in kwargs.items() if k in known})
            extents = calls.extents(_leaves(bound.values()))
            scope = ti._patch_lang(self.fn)
            try:
                values = {n: v if n in self.constexprs else ti._implicit_cvt(v) for n, v in bound.items()}
                grid = _full_grid(self.grid(values) if callable(self.grid) else self.grid)
                if calls.repeat_of((self.fn.__name__, grid)):
                    return
                recorder = LaunchRecorder(self.fn.__name__, grid, warps, stages, extents)
                calls.current = recorder
                self._run_sampled(recorder, grid, values)
            finally:
                calls.current = None
                scope.restore()

        def _run_sampled(self, recorder: LaunchRecorder, grid: tuple[int, int, int], values: dict[str, Any]) -> None:
            ti.interpreter_builder.set_grid_dim(*grid)
            programs, neighbour = sampled_programs(grid)
            scope = self.fn.__globals__
            scope["range"] = lambda *bounds: recorder.loop(*bounds)
            try:
                for program in (*programs, *neighbour):
                    ti.interpreter_builder.set_grid_idx(*program)
                    recorder.begin_program()
                    self.fn(**values)
            finally:
                scope["range"] = builtins.range
            calls.add(recorder.trace(len(programs)))

    return SamplingExecutor


def _leaves(values: Any) -> list[Any]:
    flat: list[Any] = []
    for value in values:
        if isinstance(value, tuple):
            flat += _leaves(value)
        else:
            flat.append(getattr(value, "base", value) if type(value).__name__ == "TensorDescriptor" else value)
    return flat


def _full_grid(grid: Any) -> tuple[int, int, int]:
    sizes = [int(n) for n in (grid if isinstance(grid, (tuple, list)) else (grid,))]
    x, y, z = (*sizes, *[1] * (3 - len(sizes)))
    return x, y, z


def sampled_programs(
    grid: tuple[int, int, int],
) -> tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]:
    """The midpoints of three equal parts of every axis (linear trends average out), and the first one's neighbour."""
    midpoints = (tuple(min(int(n * part / 6), n - 1) for n in grid) for part in (1, 3, 5))
    programs = list(dict.fromkeys(midpoints))
    first = programs[0]
    for axis in range(3):
        if first[axis] + 1 < grid[axis]:
            neighbour = tuple(p + (a == axis) for a, p in enumerate(first))
            return programs, [neighbour]  # type: ignore[list-item, return-value]
    return programs, []  # type: ignore[return-value]


def _item_bytes(pointer: Any) -> int:
    return max(1, int(pointer.get_element_ty().primitive_bitwidth) // 8)


def _patch_builder(patch: Callable[[Any, str, Any], None], calls: CallRecorder) -> None:
    builder = ti.InterpreterBuilder
    real_load, real_binary = builder.create_masked_load, builder.binary_op
    real_unary, real_ternary, real_cast = builder.unary_op, builder.ternary_op, builder.cast_impl

    def load(self: Any, pointers: Any, mask: Any, other: Any, *options: Any, **named: Any) -> Any:
        if calls.current is not None:
            calls.current.load(pointers.data, _mask(mask), _item_bytes(pointers))
        element = pointers.get_element_ty()
        if element.is_int() or element.is_ptr():
            return real_load(self, pointers, _handle(mask), other, None, None, False)
        return ti.TensorHandle(np.zeros(np.shape(pointers.data), ti._get_np_dtype(element)), element)

    def store(self: Any, pointers: Any, value: Any, mask: Any, *options: Any, **named: Any) -> None:
        if calls.current is not None:
            calls.current.store(pointers.data, _mask(mask), _item_bytes(pointers))

    def atomic_rmw(self: Any, op: Any, pointers: Any, value: Any, mask: Any, *options: Any) -> Any:
        if calls.current is not None:
            calls.current.atomic(pointers.data, _mask(mask), _item_bytes(pointers))
        return ti.TensorHandle(np.zeros_like(value.data), value.dtype.scalar)

    def atomic_cas(self: Any, pointers: Any, compare: Any, value: Any, *options: Any) -> Any:
        if calls.current is not None:
            calls.current.atomic(pointers.data, np.True_, _item_bytes(pointers))
        return ti.TensorHandle(np.zeros_like(compare.data), compare.dtype.scalar)

    def dot(self: Any, a: Any, b: Any, d: Any, precision: Any, *options: Any) -> Any:
        if calls.current is not None:
            batch = int(np.prod(a.data.shape[:-2]))
            m, k, n = a.data.shape[-2] * batch, a.data.shape[-1], b.data.shape[-1]
            name = str(getattr(precision, "name", precision)).lower()
            calls.current.dot(int(m), int(n), int(k), a.dtype.scalar.name, name)
        return d

    def binary(self: Any, left: Any, right: Any, op: Any) -> Any:
        result = real_binary(self, left, right, op)
        _count(calls, result, left.dtype.scalar.is_floating(), op)
        return result

    def unary(self: Any, arg: Any, op: Any) -> Any:
        result = real_unary(self, arg, op)
        _count(calls, result, arg.dtype.scalar.is_floating(), op)
        return result

    def ternary(self: Any, left: Any, right: Any, other: Any, op: Any) -> Any:
        result = real_ternary(self, left, right, other, op)
        _count(calls, result, other.dtype.scalar.is_floating(), op)
        return result

    def cast(self: Any, source: Any, kind: Any) -> Any:
        if source.dtype.scalar.is_floating() and kind.scalar.is_floating():
            result = ti.TensorHandle(np.zeros(np.shape(source.data), ti._get_np_dtype(kind)), kind.scalar)
        else:
            result = real_cast(self, source, kind)
        _count(calls, result, source.dtype.scalar.is_floating(), None)
        return result

    def fp_to_fp(self: Any, source: Any, kind: Any, rounding: Any) -> Any:
        return cast(self, source, kind)

    for name, replacement in (
        ("create_masked_load", load), ("create_masked_store", store), ("create_atomic_rmw", atomic_rmw),
        ("create_atomic_cas", atomic_cas), ("create_dot", dot), ("binary_op", binary), ("unary_op", unary),
        ("ternary_op", ternary), ("cast_impl", cast), ("create_fp_to_fp", fp_to_fp),
    ):  # fmt: skip
        patch(builder, name, replacement)


def _count(calls: CallRecorder, result: Any, floating: bool, op: Any) -> None:
    """Integer work is mostly hoisted and shared between the elements of a vector: an eighth of it counts."""
    if calls.current is not None:
        alu = _ALU_COST.get(op, 1.0)
        calls.current.elementwise(int(np.size(result.data)), alu if floating else alu / 8, float(op in _SFU))


def _mask(mask: Any) -> Any:
    return getattr(mask, "data", mask)


def _handle(mask: Any) -> Any:
    return (
        mask
        if hasattr(mask, "data") and hasattr(mask, "dtype") and not isinstance(mask, np.ndarray)
        else (ti.TensorHandle(np.asarray(mask), tl.int1))
    )


def _patch_reductions(patch: Callable[[Any, str, Any], None], calls: CallRecorder) -> None:
    """Counts reductions and scans, and samples ``tl.range`` wherever the interpreter installs its own."""
    for kind in (ti.ReduceOps, ti.ScanOps):

        def apply_impl(self: Any, inputs: Any, real: Any = kind.apply_impl) -> Any:
            if calls.current is not None:
                calls.current.reduction(int(np.size(inputs[0].handle.data)))
            return real(self, inputs)

        patch(kind, "apply_impl", apply_impl)
    patch(ti.ReduceOps, "generic_reduce", _reduce_by_shape)
    patch(ti.ScanOps, "generic_scan", lambda self, inputs: list(inputs))
    patch(ti, "_patch_lang_core", _with_sampled_range(ti._patch_lang_core, calls))


def _reduce_by_shape(self: Any, inputs: Any) -> Any:
    """A reduction with the candidate's own function: its result has the right shape, its value is not needed."""
    return [self.min_max(one, val_reduce_op=np.max) for one in inputs]


def _with_sampled_range(real: Callable[..., None], calls: CallRecorder) -> Callable[..., None]:
    def sampled(
        first: Any, last: Any = None, step: Any = None, num_stages: Any = None, unrolled: bool = False, **_: Any
    ) -> Iterator[int]:
        bounds = (first,) if last is None else (first, last, 1 if step is None else step)
        if calls.current is None:
            return iter(range(*(int(b) for b in bounds)))
        return calls.current.loop(*bounds, stages=int(num_stages or 1), unrolled=unrolled)

    def patched(lang: Any, scope: Any) -> None:
        real(lang, scope)
        scope.set_attr(lang, "range", sampled)
        scope.set_attr(lang, "static_range", partial(sampled, unrolled=True))

    return patched
