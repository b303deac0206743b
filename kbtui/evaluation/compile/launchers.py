"""Effects: compiles the C code with which Triton launches a kernel, into the cache in force, without loading it.

A launch in a candidate child then finds it and starts no compiler. Needs the driver's library to link against, so
this happens only on a machine that has it.
"""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from triton.backends.nvidia import driver as nvidia
from triton.runtime import build as triton_build


def can_build() -> bool:
    """Whether the CUDA driver's library is where a linker finds it."""
    found = os.environ.get("TRITON_LIBCUDA_PATH")
    return bool(found) and Path(str(found), "libcuda.so.1").exists()


def build(source: Any, metadata: Any) -> None:
    """The launcher of one compiled kernel. Triton's own path, but for the loading."""
    _without_loading(lambda: nvidia.CudaLauncher(source, metadata))


def build_driver_helper() -> None:
    """The C helper every launch needs (device properties, module loading)."""
    text = Path(nvidia.dirname, "driver.c").read_text()
    _without_loading(
        lambda: triton_build.compile_module_from_src(
            src=text,
            name="cuda_utils",
            library_dirs=nvidia.library_dirs(),
            include_dirs=nvidia.include_dirs,
            libraries=nvidia.libraries,
        )
    )


def _without_loading(compiles: Any) -> None:
    load = triton_build._load_module_from_path
    triton_build._load_module_from_path = lambda name, path: SimpleNamespace(launch=None, __file__=path)
    try:
        compiles()
    finally:
        triton_build._load_module_from_path = load
