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
#: In the environment: ``none``, or ``compile`` for torch.compile too.
CHOICE, COMPILE = "KBTUI_PRELOAD", "compile"
#: What a process imports at its first torch.compile, seconds of a core; some have other names in other versions.
_COMPILERS = (
    "torch._dynamo.backends.inductor", "torch._dynamo.repro.after_dynamo", "torch._inductor.compile_fx",
    "torch._inductor.async_compile", "torch._inductor.codegen.triton",
    "torch._inductor.codegen.cuda_combined_scheduling", "torch._inductor.codegen.wrapper",
    "torch._inductor.codegen.cpp_wrapper_gpu", "torch._inductor.select_algorithm", "torch._inductor.autotune_process",
    "torch._inductor.cudagraph_trees", "torch._inductor.runtime.triton_heuristics",
    "torch._inductor.runtime.coordinate_descent_tuner", "torch._inductor.runtime.static_cuda_launcher",
    "torch._inductor.runtime.autotune_cache", "torch._inductor.lowering", "torch._inductor.kernel.mm",
    "torch._inductor.kernel.bmm", "torch._inductor.kernel.conv", "torch._inductor.fx_passes.joint_graph",
    "torch._inductor.fx_passes.post_grad", "torch._inductor.fx_passes.pre_grad",
    "torch._inductor.fx_passes.fuse_attention", "torch._inductor.fx_passes.pad_mm",
    "torch._functorch._aot_autograd.autograd_cache", "torch._inductor.compile_worker.subproc_pool",
    "torch.export._trace", "torch.export._unlift",
)  # fmt: skip
#: Asks whether there is a GPU without CUDA, which must not start before a fork.
_BY_NVML = "PYTORCH_NVML_BASED_CUDA_CHECK"


def load() -> None:
    """About 2 s warm, 9 s cold. ``KBTUI_PRELOAD=none`` in the environment skips it (tests of the process layer),
    ``compile`` loads torch.compile too, for children that are to use it."""
    if os.environ.get(CHOICE) == "none":
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
    if os.environ.get(CHOICE) == COMPILE:
        _load_compilers()


def _load_compilers() -> None:
    """With their key, a hash over their own text, which every process that asks their cache needs."""
    chosen = os.environ.get(_BY_NVML)
    os.environ[_BY_NVML] = "1"
    for name in _COMPILERS:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    with contextlib.suppress(ImportError, OSError):
        importlib.import_module("torch._inductor.codecache").torch_key()
    del os.environ[_BY_NVML]
    if chosen is not None:
        os.environ[_BY_NVML] = chosen


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
