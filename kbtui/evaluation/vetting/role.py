"""Effects: the trusted role that vets a problem: asks its reference, finds its reductions, judges null answers.

No candidate's code runs here. ``KBTUI_DEVICE`` says where it computes, as for the referee.
"""

import os
import time
from collections.abc import Callable
from typing import Any

import torch

from kbtui.domain.codec import from_plain, to_plain
from kbtui.domain.problem import Problem, Shape, Tolerance
from kbtui.evaluation.gate.tolerance import OutputErrors, fault_of, relative_limit
from kbtui.evaluation.reference import LoadedReference
from kbtui.evaluation.roles import oracle
from kbtui.evaluation.roles.referee import DEVICE_VARIABLE
from kbtui.evaluation.vetting import questions, sizes
from kbtui.evaluation.vetting.lazy import axis_name
from kbtui.evaluation.vetting.nulls import null_answers
from kbtui.evaluation.vetting.reductions import Kind, Reduction, find_reductions

#: What one call may take: some fifty follow for each draw.
_MOST_S = 1.0


class TooSlowError(Exception):
    """A shape is too large to be vetted on this device."""


class Vetter:
    """One problem. Shapes and reductions cross as plain values."""

    def __init__(self) -> None:
        torch.set_grad_enabled(False)
        torch.set_num_threads(1)  # tensors are small, and the cores are often others' too
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        self._device = os.environ.get(DEVICE_VARIABLE, "cpu")
        self._problem: Problem | None = None
        self._loaded: LoadedReference | None = None
        self._reductions: tuple[Reduction, ...] = ()
        self._began_s = time.process_time()

    def open(self, problem: dict[str, Any]) -> list[Any]:
        """Import the reference; complaints."""
        self._problem = from_plain(Problem, problem)
        try:
            self._loaded = questions.load(self._problem)
        except questions.QuestionError as error:
            return [to_plain(error.complaint)]
        return []

    def examine(self, shape: dict[str, Any]) -> list[Any]:
        """Complaints as dicts, notes as text."""
        problem, loaded = self._opened
        found: list[Any] = []
        try:
            for told in questions.examine(problem, loaded, _shape(shape), self._device):
                found.append(told if isinstance(told, str) else to_plain(told))
        except questions.QuestionError as error:
            found.append(to_plain(error.complaint))
        return found

    def reductions(self, shapes: list[dict[str, Any]]) -> list[str]:
        """Look for reductions on these small shapes, on the CPU; returns them in words, unknown order last."""
        problem, loaded = self._opened
        found: dict[Reduction, None] = {}
        for shape in map(_shape, shapes):
            dtype = problem.spec.dtype_of(shape)
            inputs = loaded.make_inputs(shape.as_dict(), 0, "cpu", problem.spec.distributions[0], dtype=dtype)
            found |= dict.fromkeys(find_reductions(loaded.reference, inputs))
        stronger = {axis for r in found if r.kind is not Kind.WINDOW for axis in r.axes}
        self._reductions = tuple(r for r in found if r.kind is not Kind.WINDOW or not stronger & set(r.axes))
        names = loaded.names_of(_shape(shapes[0]).as_dict())
        return [f"{r.kind}: {_axes(r, names)}" for r in self._reductions]

    def sizes(self, shape: dict[str, Any], rows: int) -> dict[str, Any]:
        """Sizes of a call, with at most so many rows (0: all of them), and the dims they are of. Raises."""
        problem, loaded = self._opened
        wanted = _shape(shape)
        how = (problem.spec.distributions[0], problem.spec.dtype_of(wanted))
        dims = wanted.as_dict()
        if rows:
            dims = sizes.with_fewer_rows(loaded, dims, rows, *how, self._reductions)
        inputs = sizes.inputs_on_meta(loaded, dims, *how)
        return {
            "dims": [list(d) for d in dims.items()],
            "input_bytes": sizes.n_bytes(inputs),
            "n_elements": sizes.n_elements(inputs),
        }

    def vet(
        self, shape: dict[str, Any], distribution: str, other: str | None, seed: int, allclose: float | None
    ) -> dict[str, Any]:
        """Every null kernel's answer to one draw, judged by the problem's tolerance, or by allclose where given.

        ``other``: a distribution whose answer is one of them. Raises TooSlowError where that would take too long.
        """
        problem, loaded = self._opened
        wanted = _shape(shape)
        dims, dtype = wanted.as_dict(), problem.spec.dtype_of(wanted)

        def make(at: int, drawn: str) -> tuple[Any, ...]:
            return loaded.make_inputs(dims, at, self._device, drawn, dtype=dtype)

        others = {"last call": make(seed + 1, distribution)}
        if other is not None:
            others["last distribution"] = make(seed, other)
        inputs = make(seed, distribution)
        began = time.process_time()
        expected = oracle.expect(loaded.reference, inputs)
        if (took_s := time.process_time() - began) > _MOST_S:
            raise TooSlowError(f"one call of the reference and its oracle took {took_s:.1f} s of CPU")
        answer = [e.oracle.double() for e in expected]
        lowest = _lowest(inputs)
        names = loaded.names_of(dims)
        cells = []
        for null in null_answers(loaded.reference, inputs, answer, others, self._reductions, names):
            for i, (got, want) in enumerate(zip(null.outputs, expected, strict=True)):
                if got is None or got.shape != want.own.shape:
                    continue
                judged = _judged(got.to(want.own.dtype).contiguous(), want, problem.spec.tolerance, allclose)
                cells.append({"null": null.name, "output": i, "lowest_input": lowest, **judged})
        finite = min(float(torch.isfinite(y).double().mean()) for y in answer)
        moved = sizes.n_bytes(inputs) + sizes.n_bytes([e.own for e in expected])
        return {
            "cells": cells,
            "moved_bytes": moved,
            "finite": finite,
            "own": max(e.own_rel_l2 for e in expected),
            "cpu_s": time.process_time() - self._began_s,
        }

    @property
    def _opened(self) -> tuple[Problem, LoadedReference]:
        if self._problem is None or self._loaded is None:
            raise RuntimeError("no problem is open")
        return self._problem, self._loaded


def make(fds: tuple[int, ...]) -> dict[str, Callable[..., Any]]:
    del fds
    vetter = Vetter()
    return {name: getattr(vetter, name) for name in ("open", "examine", "reductions", "sizes", "vet")}


def _judged(got: torch.Tensor, want: oracle.Expected, tolerance: Tolerance, allclose: float | None) -> dict[str, Any]:
    errors: OutputErrors = oracle.measure(got, want)
    passes = fault_of(errors, tolerance) is None
    if allclose is not None:
        passes = torch.allclose(got, want.own, rtol=allclose, atol=allclose, equal_nan=True)
    largest = float(torch.nan_to_num(want.oracle, posinf=0.0, neginf=0.0).abs().max())
    return {
        "passes": passes,
        "error": errors.rel_l2 if not errors.nonfinite_wrong else float("inf"),
        "limit": relative_limit(errors, tolerance),
        "own": errors.own_rel_l2,
        "rms": errors.rms,
        "largest": largest,
    }


def _lowest(inputs: tuple[Any, ...]) -> float:
    floats = [x for x in inputs if isinstance(x, torch.Tensor) and x.is_floating_point() and x.numel()]
    return min((float(x.min()) for x in floats), default=0.0)


def _axes(reduction: Reduction, names: tuple[str, ...]) -> str:
    return " and ".join(axis_name(axis, names) for axis in reduction.axes)


def _shape(plain: dict[str, Any]) -> Shape:
    shape: Shape = from_plain(Shape, plain)
    return shape
