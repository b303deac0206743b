"""Lets a candidate written for a GPU run under Triton's interpreter: tensors on the CPU say that they are on the GPU.

Effects: replaces torch.cuda's questions, Triton's driver and the interpreter's launch, for good. For confined children.
"""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from kbtui.domain.device import DeviceSpec
from kbtui.evaluation.compile.pretend import SaysCuda, answer_queries

_CPU = torch.device("cpu")


class InterpretedGpu:
    """``with gpu():`` around everything of the candidate's that runs; launches leave it by themselves.

    ``brought``: names of the calls that would have copied values from the GPU to the host.
    """

    def __init__(self, device: DeviceSpec) -> None:
        self.brought: list[str] = []
        from triton.runtime import driver

        answer_queries(device)
        driver.set_active(_Driver(device))
        _launches_see_the_cpu()
        _products_round_as_tensor_cores_do()
        _launches_never_overlap()

    def __call__(self) -> Any:
        return SaysCuda(_CPU, self.brought)


def _launches_see_the_cpu() -> None:
    from triton.runtime.interpreter import GridExecutor

    launch = GridExecutor.__call__

    def outside(executor: Any, *args: Any, **kwargs: Any) -> Any:
        # A grid that is a function is the candidate's: nothing of it needs the device.
        with torch._C.DisableTorchFunction():
            return launch(executor, *args, **kwargs)

    GridExecutor.__call__ = outside


def skip_overflow_checks() -> None:
    """Spare the interpreter half of its work: nothing of it is ever read.

    It computes each sum, difference and product of integers again in 64 bits, to assert that it fits in 32, and asserts
    only under ``debug``, which it never is. On a GPU Triton leaves this out likewise unless asked. The tracer keeps it:
    its model of integer work was fitted with these operations in.
    """
    from triton.runtime.interpreter import interpreter_builder

    if not interpreter_builder.options.debug:
        interpreter_builder.options = replace(interpreter_builder.options, sanitize_overflow=False)


def _products_round_as_tensor_cores_do() -> None:
    """``tl.dot`` of fp32 is TF32 unless asked for more; the interpreter's is exact, and would pass what a GPU fails."""
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

    exact = InterpreterBuilder.create_dot

    def create_dot(builder: Any, a: Any, b: Any, d: Any, precision: Any, *options: Any) -> Any:
        if getattr(precision, "name", "") == "TF32":
            a, b = (TensorHandle(_tf32(x.data), x.dtype) if x.data.dtype == np.float32 else x for x in (a, b))
        return exact(builder, a, b, d, precision, *options)

    InterpreterBuilder.create_dot = create_dot


def _launches_never_overlap() -> None:
    """Waiting for the launch before, and letting the next one start: no work here, for launches follow one another."""
    from triton.language import extra

    # Triton imports the package twice: an attribute of its parent and an entry of sys.modules are two modules.
    package = f"{extra.__name__}.cuda"
    for module in (extra.cuda, importlib.import_module(package), importlib.import_module(f"{package}.gdc")):
        for name in ("gdc_wait", "gdc_launch_dependents"):
            setattr(module, name, _nothing_to_wait_for)


def _nothing_to_wait_for(_semantic: Any = None) -> None: ...


def _tf32(values: Any) -> Any:
    """The upper 19 bits: what mma.tf32 reads of a register (PTX ISA, mma)."""
    return (np.ascontiguousarray(values).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


class _Driver:
    """Of Triton's driver, what sources ask: the chip's properties; autotune's clock, on which all is equal."""

    def __init__(self, device: DeviceSpec) -> None:
        from kbtui.evaluation.compile.recorder import Utils

        self._device = device
        self.utils = Utils(device)

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", self._device.arch, 32)

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cuda", 0)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, _: int) -> None: ...

    def get_current_stream(self, _: int | None = None) -> int:
        return 0

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_device_capability(self, _: int = 0) -> tuple[int, int]:
        return divmod(self._device.arch, 10)

    def get_benchmarker(self) -> Callable[..., list[float]]:
        return _all_equal


def _all_equal(_: Callable[[], Any], quantiles: Sequence[float] | None = (0.5,), **__: Any) -> list[float]:
    """No configuration is run: the first is taken, as where they are compiled."""
    return [1.0] * len(quantiles or (0.5,))
