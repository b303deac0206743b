"""Run samples' first kernels and print, as JSON by name, their error on each small shape and distribution.

usage: python interpreter_check.py DEVICE MAX_ELEMENTS NAME... (in a fresh process: Triton reads TRITON_INTERPRET once)
"""

import json
import runpy
import sys
import time
from pathlib import Path

import torch

from kbtui.domain.problem import TOLERANCE_FLOOR, ShapeRole
from kbtui.problems import load_problem


def relative_l2(out: torch.Tensor, oracle: torch.Tensor) -> float:
    return ((out.double() - oracle).norm() / oracle.norm()).item()


def largest_input(reference: dict, shape, dtype: str) -> int:
    inputs = reference["make_inputs"](shape.as_dict(), None, "meta", "normal", dtype=dtype)
    return max(t.numel() for t in inputs)


def check(reference: dict, kernel, shape, dtype: str, distribution: str, device: str) -> dict:
    generator = torch.Generator(device).manual_seed(1)
    inputs = reference["make_inputs"](shape.as_dict(), generator, device, distribution, dtype=dtype)
    before = [t.clone() for t in inputs]
    started = time.perf_counter()
    out = kernel(*inputs)
    seconds = time.perf_counter() - started
    oracle = reference["reference"](*(t.double() for t in inputs))
    expected = reference["reference"](*inputs)
    return {
        "shape": shape.name,
        "role": shape.role.value,
        "distribution": distribution,
        "error": relative_l2(out, oracle),
        "limit": max(2 * relative_l2(expected, oracle), TOLERANCE_FLOOR[dtype]),
        "oracle_rms": oracle.square().mean().sqrt().item(),
        "same_kind": (out.shape, out.dtype, out.device) == (expected.shape, expected.dtype, expected.device),
        "inputs_kept": all(torch.equal(a, b) for a, b in zip(before, inputs, strict=True)),
        "seconds": seconds,
    }


def rows_of(name: str, device: str, max_elements: int) -> list[dict]:
    problem = load_problem(name)
    folder = Path(problem.path)
    reference = runpy.run_path(str(folder / "reference.py"))
    kernel = runpy.run_path(str(folder / "kernel.py"))["kernel_function"]
    rows = []
    for shape in problem.spec.shapes:
        dtype = problem.spec.dtype_of(shape)
        if shape.role is ShapeRole.PROXY or largest_input(reference, shape, dtype) <= max_elements:
            rows += [check(reference, kernel, shape, dtype, d, device) for d in problem.spec.distributions]
    return rows


if __name__ == "__main__":
    print(json.dumps({name: rows_of(name, sys.argv[1], int(sys.argv[2])) for name in sys.argv[3:]}))
