"""Checks."""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from kbtui.leaving.alone.kernels import Problem
from kbtui.leaving.alone.small_parts import Function, as_list, bits_of, chunks, double, kind_of, relative

#: How much worse than the reference's own error a kernel may be, overall and in one element.
OWN_ERROR_FACTOR, OWN_ELEMENT_FACTOR = 2.0, 4.0


def check_all(
    problem: Problem, kernel: Function, checks: Sequence[dict[str, Any]], say: Callable[[str], None]
) -> list[dict[str, Any]]:
    results = []
    for where in checks:
        began = time.perf_counter()
        try:
            error, fault = check(problem, kernel, where)
        except Exception as raised:  # whatever a kernel raises is a failed check
            error, fault = math.inf, f"raised {type(raised).__name__}: {str(raised).strip().splitlines()[:1]}"
        spent_s = time.perf_counter() - began
        again = ", again" if where["kind"] == "repeat" else ""
        name = f"{where['shape']}, {where['distribution']}{again}"
        say(f"  {'FAIL' if fault else 'ok':4} {name:40} error {error:.2e}  {spent_s:5.2f} s  {fault or ''}".rstrip())
        results.append({"shape": where["shape"], "distribution": where["distribution"], "error": error, "fault": fault})
    return results


def check(problem: Problem, kernel: Function, where: dict[str, Any]) -> tuple[float, str | None]:
    """(largest relative L2 error, what is wrong or None) of one call."""
    inputs = problem.inputs(where)
    with exact_arithmetic():
        own = as_list(problem.reference(*inputs))
        exact = [o.to(own[0].device) for o in oracle(problem, inputs)]
    before = [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]
    with unwritten_memory_is_nan():
        got = as_list(kernel(*inputs))
    if problem.device == "cuda":
        torch.cuda.synchronize()
    fault = kind_fault(got, own, inputs)
    if fault:
        return math.inf, fault
    errors = [errors_of(*triple) for triple in zip(exact, own, got, strict=True)]
    for i, (x, y) in enumerate(zip(inputs, before, strict=True)):
        if isinstance(x, torch.Tensor) and not torch.equal(bits_of(x), bits_of(y)):
            return errors[0]["rel_l2"], f"argument {i} was written to"
    faults = (value_fault(e, problem.tolerance) for e in errors)
    return max(e["rel_l2"] for e in errors), next((f for f in faults if f), None)


def oracle(problem: Problem, inputs: Sequence[Any]) -> list[torch.Tensor]:
    """The reference in float64, on the CPU where the GPU's memory is short."""
    try:
        return as_list(problem.reference(*[double(x, problem.device) for x in inputs]))
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
    host = [double(x, "cpu") for x in inputs]
    return as_list(problem.reference(*host))


def kind_fault(got: Sequence[Any], own: Sequence[torch.Tensor], inputs: Sequence[Any]) -> str | None:
    """Outputs of the exact number, type, shape and dtype, in memory of their own."""
    if len(got) != len(own):
        return f"returned {len(got)} values, expected {len(own)}"
    memory = {x.untyped_storage().data_ptr() for x in inputs if isinstance(x, torch.Tensor)}
    for output, expected in zip(got, own, strict=True):
        if type(output) is not torch.Tensor or output.device.type != expected.device.type:
            return f"returned {type(output).__name__}, expected a tensor on {expected.device.type}"
        if output.shape != expected.shape or output.dtype != expected.dtype:
            return f"{tuple(output.shape)} {output.dtype}, expected {tuple(expected.shape)} {expected.dtype}"
        if output.numel() and output.untyped_storage().data_ptr() in memory:
            return "shares memory with an input"
    return None


def errors_of(exact: torch.Tensor, own: torch.Tensor, got: torch.Tensor) -> dict[str, float]:
    """Relative L2 and largest absolute error of an output and of the reference's own, over finite positions."""
    sums = dict.fromkeys(("difference", "own_difference", "exact", "n", "nonfinite_wrong"), 0.0)
    largest = {"max_abs": 0.0, "own_max_abs": 0.0}
    for x, mine, theirs in chunks(exact, own, got):
        for value, key, top in ((theirs, "difference", "max_abs"), (mine, "own_difference", "own_max_abs")):
            finite = torch.isfinite(x) & torch.isfinite(value)
            off = (torch.where(finite, value.double(), 0.0) - torch.where(finite, x, 0.0)).abs()
            sums[key] += float(off.square().sum())
            largest[top] = max(largest[top], float(off.max()))
        finite = torch.isfinite(x) & torch.isfinite(theirs)
        sums["exact"] += float(torch.where(finite, x, 0.0).square().sum())
        sums["n"] += float(finite.sum())
        wrong = (kind_of(theirs) != kind_of(x.to(mine.dtype))) & (kind_of(theirs) != kind_of(mine))
        sums["nonfinite_wrong"] += float(wrong.sum())
    return {
        **largest,
        "rel_l2": relative(sums["difference"], sums["exact"]),
        "own_rel_l2": relative(sums["own_difference"], sums["exact"]),
        "rms": math.sqrt(sums["exact"] / sums["n"]) if sums["n"] else 0.0,
        "nonfinite_wrong": sums["nonfinite_wrong"],
    }


def value_fault(errors: dict[str, float], tolerance: dict[str, float]) -> str | None:
    """What is wrong with an output's values, in one line."""
    if errors["nonfinite_wrong"]:
        return f"NaN or Inf differs, or memory was never written, at {errors['nonfinite_wrong']:,.0f} elements"
    own, own_abs = (v if math.isfinite(v) else 0.0 for v in (errors["own_rel_l2"], errors["own_max_abs"]))
    limit = max(OWN_ERROR_FACTOR * own, tolerance["floor"])
    if not errors["rel_l2"] <= limit:
        return f"relative L2 error {errors['rel_l2']:.1e} > {limit:.1e} (the reference's own is {own:.1e})"
    bound = max(tolerance["element"] * limit * errors["rms"], OWN_ELEMENT_FACTOR * own_abs)
    if not errors["max_abs"] <= bound:
        return f"one element is off by {errors['max_abs']:.1e} > {bound:.1e}"
    return None


class exact_arithmetic:  # noqa: N801
    """The reference's own error is that of its dtype: no TF32, no half-precision accumulation."""

    def __enter__(self) -> None:
        matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
        self._places = (
            (matmul, "allow_tf32"),
            (matmul, "allow_fp16_reduced_precision_reduction"),
            (matmul, "allow_bf16_reduced_precision_reduction"),
            (cudnn, "allow_tf32"),
        )
        self._before = [getattr(place, name) for place, name in self._places]
        for place, name in self._places:
            setattr(place, name, False)

    def __exit__(self, *_: object) -> None:
        for (place, name), value in zip(self._places, self._before, strict=True):
            setattr(place, name, value)


class unwritten_memory_is_nan:  # noqa: N801
    """torch.empty gives NaN inside, so that what a kernel leaves unwritten shows."""

    def __enter__(self) -> None:
        # Not use_deterministic_algorithms: it imports torch's compiler, which takes as long as torch itself.
        torch.set_deterministic_debug_mode("warn")
        torch.utils.deterministic.fill_uninitialized_memory = True  # type: ignore[attr-defined]

    def __exit__(self, *_: object) -> None:
        torch.set_deterministic_debug_mode("default")
