"""Effects: imports torch and Triton into the zygote and computes, once, what every launch would compute again.

Triton asks programs for versions and paths at a first launch (``ptxas --version``, ``file``, ``ldconfig``) and hashes
its own 500 MB library; the answers are cached in the process, so children inherit them and start nothing.
"""

import contextlib
import importlib
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

#: Compute capabilities whose version question is asked ahead: Triton keeps one answer for each.
_ARCHITECTURES = (80, 86, 89, 90, 100, 103, 120)
#: What every candidate's child runs, imported here once: it starts nothing and touches no device until it is called.
_ROLES = ("kbtui.evaluation.roles.candidate", "kbtui.evaluation.roles.warmth", "triton.runtime.interpreter")


def load() -> None:
    """About 2 s warm, 9 s cold. ``KBTUI_PRELOAD=none`` in the environment skips it (tests of the process layer)."""
    if os.environ.get("KBTUI_PRELOAD") == "none":
        return
    import torch  # noqa: F401
    import triton
    import triton.experimental.gluon
    import triton.language.extra.cuda
    from triton.runtime import build, cache

    cache.triton_key()
    build.platform_key()
    _remember_tools(triton)
    _remember_libcuda()
    for name in _ROLES:
        importlib.import_module(name)


def report() -> dict[str, Any]:
    import sys

    names = ("torch", "triton")
    return {name: sys.modules[name].__version__ for name in names if name in sys.modules}


def _remember_tools(triton: Any) -> None:
    from triton.backends.nvidia import compiler

    for tool in ("ptxas", "ptxas_blackwell"):
        with contextlib.suppress(RuntimeError, AttributeError):
            getattr(triton.knobs.nvidia, tool)
    for arch in _ARCHITECTURES:
        with contextlib.suppress(RuntimeError, OSError, subprocess.CalledProcessError):
            compiler.get_ptxas_version(arch)


def _remember_libcuda() -> None:
    """With the driver's directory in the environment Triton does not run ldconfig to find it."""
    if "TRITON_LIBCUDA_PATH" in os.environ:
        return
    candidates = (
        f"/usr/lib/{platform.machine()}-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/nvidia/lib64",
        "/usr/local/cuda/compat", *os.environ.get("LD_LIBRARY_PATH", "").split(":"),
    )  # fmt: skip
    found = next((d for d in candidates if d and Path(d, "libcuda.so.1").exists()), None)
    if found:
        os.environ["TRITON_LIBCUDA_PATH"] = found
