"""Effects: notes what of Python, torch, Triton and the harness a candidate must leave as it found it, and compares."""

import builtins
import functools
import json
import os
import signal
import sys
import types
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_HARNESS = "kbtui."
_MODULES = (
    "socket", "select", "struct", "json", "json.encoder", "json.decoder", "time", "os", "traceback", "contextlib",
    "hashlib", "random", "math", "tempfile", "linecache", "torch", "torch.cuda", "torch.testing",
    "torch.utils._python_dispatch", "torch.overrides", "torch.nn.functional", "triton", "triton.testing",
    "triton.runtime.jit", "triton.runtime.autotuner", "triton.compiler.compiler",
)  # fmt: skip
#: Written by torch and Triton themselves while they work.
_OWN_STATE = frozenset({"__warningregistry__", "__builtins__", "__slotnames__", "__abstractmethods__"})


class Unchanged:
    """What was there when it was made. ``harness``: the project's modules, all of whose names are watched."""

    def __init__(self, harness: tuple[types.ModuleType, ...] = ()) -> None:
        self._flags = global_flags()
        self._names = {
            owner: (names, {n: v for n, v in names.items() if _counts(n, v, whole)})
            for owner, names, whole in _owners(harness)
        }
        self._of_classes = {
            owner: frozenset(names) for owner, (names, _) in self._names.items()
            if isinstance(names, types.MappingProxyType)
        }  # fmt: skip

    def note_switches(self) -> None:
        """Take the switches as they are now: a spare is told where its compiled kernels lie after it was noted."""
        self._flags = global_flags()

    def note_flags(self) -> None:
        """Once more: what is set for one child is set after it was warmed."""
        self._flags = global_flags()

    def changed(self) -> list[str]:
        """Names of what is no longer the same object, or has another value."""
        flags = global_flags()
        found = [name for name, value in self._flags.items() if flags[name] != value]
        for owner, (names, before) in self._names.items():
            found += [f"{owner}.{n}" for n, value in before.items() if names.get(n) is not value]
            # What is added to a class stands before what it inherits.
            found += [f"{owner}.{n}" for n in names.keys() - self._of_classes.get(owner, names.keys()) - _OWN_STATE]
        return found


def harness_modules() -> tuple[types.ModuleType, ...]:
    return tuple(m for name, m in tuple(sys.modules.items()) if name.startswith(_HARNESS) and m is not None)


def hide_harness() -> None:
    """Take the project's modules out of Python's table, so that no name leads a candidate to them."""
    for name in tuple(sys.modules):
        if name.partition(".")[0] in ("kbtui", "sample_kernels"):
            del sys.modules[name]
    sys.modules["__main__"] = types.ModuleType("__main__")


def global_flags() -> dict[str, Any]:
    """Process-wide switches that change results, times, or who sees what."""
    return {
        "default dtype": str(torch.get_default_dtype()),
        "default device": str(torch.get_default_device()),
        "grad mode": torch.is_grad_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "float32 matmul precision": torch.get_float32_matmul_precision(),
        "matmul.allow_tf32": torch.backends.cuda.matmul.allow_tf32,
        "matmul.allow_fp16_reduced_precision_reduction": str(
            torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction
        ),
        "cudnn.allow_tf32": torch.backends.cudnn.allow_tf32,
        "cudnn.benchmark": torch.backends.cudnn.benchmark,
        "cudnn.enabled": torch.backends.cudnn.enabled,
        "threads": torch.get_num_threads(),
        "anomaly mode": torch.is_anomaly_enabled(),
        "dispatch modes": torch._C._len_torch_dispatch_stack(),
        "function modes": torch._C._len_torch_function_stack(),
        "trace function": (sys.gettrace(), sys.getprofile()),
        "timers": tuple(signal.getitimer(which)[0] > 0 for which in (0, 1, 2)),
        "signal handlers": tuple(signal.getsignal(n) for n in (signal.SIGALRM, signal.SIGINT, signal.SIGTERM)),
        "environment": dict(os.environ),
        "launch hooks": _launch_hooks(),
        "current stream": _current_stream(),
    }


def _launch_hooks() -> tuple[Any, ...]:
    import triton

    runtime = triton.knobs.runtime
    hooks = (runtime.launch_enter_hook, runtime.launch_exit_hook)
    return tuple((id(hook), len(getattr(hook, "calls", ()))) for hook in hooks)


def _current_stream() -> int:
    started = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return int(torch.cuda.current_stream().cuda_stream) if started else 0


def _owners(harness: tuple[types.ModuleType, ...]) -> Iterator[tuple[str, Any, bool]]:
    """(name, its names, whether all of them count): classes count with the names they inherit, one owner each."""
    yield "builtins", vars(builtins), False
    for name in _MODULES:
        if name in sys.modules:
            yield name, vars(sys.modules[name]), False
    for owner in _classes():
        for base in owner.__mro__:
            if base is not object:
                yield f"{base.__module__}.{base.__qualname__}", vars(base), False
    for module in harness:
        yield module.__name__, vars(module), True
        for value in tuple(vars(module).values()):
            if isinstance(value, type) and value.__module__ == module.__name__:
                yield f"{module.__name__}.{value.__qualname__}", vars(value), True


@functools.cache
def _classes() -> tuple[type, ...]:
    import socket

    from triton.compiler.compiler import CompiledKernel
    from triton.runtime.interpreter import GridExecutor
    from triton.runtime.jit import JITFunction, KernelInterface

    return (
        torch.Tensor, torch.cuda.Event, torch.cuda.Stream, torch.UntypedStorage, TorchDispatchMode, CompiledKernel,
        GridExecutor, JITFunction, KernelInterface, socket.socket, json.JSONEncoder, json.JSONDecoder,
    )  # fmt: skip


def _counts(name: str, value: Any, whole: bool) -> bool:
    if name in _OWN_STATE:
        return False
    return whole or callable(value) or isinstance(value, (property, staticmethod, classmethod))
