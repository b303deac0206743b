"""Compile a sample's first kernel for a chip that is not there, on its timed shapes; print its resources as JSON.

usage: python compile_check.py NAME ARCH (in a fresh process, with TRITON_INTERPRET unset)
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


def main(name: str, arch: int) -> None:
    driver.set_active(AbsentDriver(arch))
    compiled = {}
    run = JITFunction.run

    def compile_only(self, *args, grid, warmup, **options):
        kernel = run(self, *args, grid=grid, warmup=True, **options)
        compiled[kernel.hash] = kernel

    JITFunction.run = compile_only
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
    print(json.dumps(rows))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
