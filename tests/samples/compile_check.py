"""Compile samples' first kernels for a chip that is not there, on their timed shapes; print resources as JSON by name.

usage: python compile_check.py ARCH NAME... (in a fresh process, with TRITON_INTERPRET unset)
"""

import json
import re
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from kbtui.domain.problem import ShapeRole
from kbtui.problems import load_problem

PTXAS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"


class AbsentDriver:
    """Answers what Triton asks of a driver before a launch, for a target that is not there."""

    def __init__(self, arch: int) -> None:
        self.target = GPUTarget("cuda", arch, 32)

    def get_current_target(self):
        return self.target

    def get_active_torch_device(self):
        return torch.device("cpu")

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=None):
        return 0


def spill_bytes(ptx: str) -> int:
    target = re.search(r"\.target\s+(sm_\w+)", ptx).group(1)
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        command = [str(PTXAS), "-v", f"--gpu-name={target}", file.name, "-o", "/dev/null"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    return sum(int(n) for n in re.findall(r"(\d+) bytes spill (?:stores|loads)", said))


def keep_compiled(arch: int) -> dict:
    """Make launches compile only, for this chip; their kernels come here."""
    driver.set_active(AbsentDriver(arch))
    compiled: dict = {}
    run = JITFunction.run

    def compile_only(self, *args, grid, warmup, **options):
        kernel = run(self, *args, grid=grid, warmup=True, **options)
        compiled[kernel.hash] = kernel

    JITFunction.run = compile_only
    return compiled


def rows_of(name: str, compiled: dict) -> list[dict]:
    problem = load_problem(name)
    folder = Path(problem.path)
    make_inputs = runpy.run_path(str(folder / "reference.py"))["make_inputs"]
    kernel_function = runpy.run_path(str(folder / "kernel.py"))["kernel_function"]
    rows = []
    for shape in problem.spec.shapes_of(ShapeRole.TUNE):
        kernel_function(*make_inputs(shape.as_dict(), None, "meta", "normal", dtype=problem.spec.dtype_of(shape)))
        for kernel in compiled.values():
            shared = kernel.metadata.shared
            rows.append({"shape": shape.name, "shared_bytes": shared, "spill_bytes": spill_bytes(kernel.asm["ptx"])})
        compiled.clear()
    return rows


def main(arch: int, names: list[str]) -> None:
    compiled = keep_compiled(arch)
    print(json.dumps({name: rows_of(name, compiled) for name in names}))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
