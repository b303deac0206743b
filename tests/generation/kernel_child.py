"""Runs kernel sources on a sample problem's inputs, in a process of its own. A list of jobs as a line of JSON on stdin,
their rows as a line on stdout, until stdin ends.

usage: kernel_child.py interpret | gpu | compile ARCH | ttir ARCH
A job is {"source", "problem", "dims", "dtype", "layout"}. ``interpret`` needs TRITON_INTERPRET=1 (Triton reads it once)
and answers the relative L2 error against a float64 oracle; ``compile`` needs no GPU and answers shared memory, spills;
``ttir`` stops at Triton's first intermediate code.
"""

import contextlib
import importlib.util
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import torch
import triton
from triton.backends.nvidia.compiler import CUDABackend

from kbtui.evaluation.compile.interpreted import skip_overflow_checks
from kbtui.problems import load_problem

DEVICES = {"interpret": "cpu", "gpu": "cuda"}
SCRATCH = Path(tempfile.mkdtemp(prefix="kernel-child-"))
PTXAS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"


@cache
def load_module(source: str):
    path = SCRATCH / f"kernel_{abs(hash(source))}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def reference_of(problem: str):
    spec = importlib.util.spec_from_file_location(f"ref_{problem}", Path(load_problem(problem).path) / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lay_out(x: torch.Tensor, layout: str) -> torch.Tensor:
    """The same values under other strides: reversed dimensions, or every second element of a larger tensor."""
    if layout == "reversed":
        order = tuple(reversed(range(x.dim())))
        return x.permute(order).contiguous().permute(order)
    if layout == "infinite":
        x = x.clone()
        x[0], x[1, : x.shape[1] // 2], x[1, -1] = -math.inf, -math.inf, 3.0
        return x
    if layout == "sliced":
        larger = torch.zeros((*x.shape[:-1], 2 * x.shape[-1]), dtype=x.dtype)
        larger[..., ::2] = x
        return larger[..., ::2]
    return x


def run_kernel(job: dict, device: str) -> dict:
    reference = reference_of(job["problem"])
    generator = torch.Generator(device).manual_seed(7)
    kind = job.get("distribution", "normal")
    inputs = reference.make_inputs(job["dims"], generator, device, kind, dtype=job.get("dtype", "float32"))
    inputs = [lay_out(x, job.get("layout", "contiguous")) for x in inputs]
    oracle = reference.reference(*(x.double() for x in inputs))
    out = load_module(job["source"]).kernel_function(*inputs)
    error = ((out.double() - oracle).norm() / oracle.norm()).item()
    return {
        "error": error if math.isfinite(error) else 1e9,
        "shape_ok": out.shape == oracle.shape,
        "same_nans": torch.equal(out.isnan(), oracle.isnan()) and torch.allclose(out[1].double(), oracle[1])
        if job.get("layout") == "infinite"
        else None,
    }


class AbsentDriver:
    """Answers what Triton asks of a driver before a launch, for a GPU that is not there."""

    def __init__(self, arch: int) -> None:
        self.target = triton.backends.compiler.GPUTarget("cuda", arch, 32)

    def get_current_target(self):
        return self.target

    def get_active_torch_device(self):
        return torch.device("cpu")

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=None):
        return 0


class AtTtir(Exception):  # noqa: N818 - it is no error
    """Compilation has come to the first intermediate code."""


def start_compiling(arch: int, only_ttir: bool) -> list:
    """What launches compile comes here: kernels, or the texts of their first intermediate code."""
    kernels: list = []
    run, make_ttir = triton.runtime.jit.JITFunction.run, CUDABackend.make_ttir

    def compile_only(self, *args, grid, warmup, **options):
        with contextlib.suppress(AtTtir):
            kernels.append(run(self, *args, grid=grid, warmup=True, **options))

    def stop(*args):
        kernels.append(str(make_ttir(*args)))
        raise AtTtir

    if only_ttir:
        CUDABackend.make_ttir = staticmethod(stop)
    triton.runtime.driver.set_active(AbsentDriver(arch))
    triton.runtime.jit.JITFunction.run = compile_only
    return kernels


def spill_bytes(ptx: str) -> int:
    target = re.search(r"\.target\s+(sm_\w+)", ptx).group(1)
    path = SCRATCH / "kernel.ptx"
    path.write_text(ptx)
    command = [str(PTXAS), "-v", f"--gpu-name={target}", str(path), "-o", "/dev/null"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    return sum(int(n) for n in re.findall(r"(\d+) bytes spill (?:stores|loads)", said))


def compile_job(job: dict, kernels: list) -> dict:
    kernels.clear()
    dtype = job.get("dtype", "float32")
    inputs = reference_of(job["problem"]).make_inputs(job["dims"], None, "meta", "normal", dtype=dtype)
    load_module(job["source"]).kernel_function(*inputs)
    if kernels and isinstance(kernels[0], str):
        return {"ttir": list(kernels)}
    return {
        "kernels": [
            {
                "name": k.metadata.name,
                "shared_bytes": k.metadata.shared,
                "spill_bytes": spill_bytes(k.asm["ptx"]),
                "num_warps": k.metadata.num_warps,
            }
            for k in kernels
        ]
    }


def row_of(mode: str, job: dict, kernels: list) -> dict:
    try:
        return run_kernel(job, DEVICES[mode]) if mode in DEVICES else compile_job(job, kernels)
    except Exception as error:  # a job's failure is the row's, whatever it is
        return {"failed": f"{type(error).__name__}: {str(error)[-600:]}"}


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a kernel prints is no answer
    mode = sys.argv[1]
    if mode == "interpret":
        skip_overflow_checks()
    kernels = [] if mode in DEVICES else start_compiling(int(sys.argv[2]), only_ttir=mode == "ttir")
    for line in sys.stdin:
        json.dump([row_of(mode, job, kernels) for job in json.loads(line)], answers)
        answers.write("\n")
        answers.flush()


if __name__ == "__main__":
    main()
