"""Effects: the role of the confined child that traces one candidate on shapes of a problem, under the interpreter."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from kbtui.domain.codec import from_plain, to_plain
from kbtui.domain.device import DeviceSpec
from kbtui.evaluation import candidate_module
from kbtui.evaluation.compile.interpreted import InterpretedGpu
from kbtui.evaluation.compile.specs import Argument, TensorSpec, inputs_from_plain
from kbtui.evaluation.model_context import context_from_plain
from kbtui.evaluation.modelled.tracer import trace_call
from kbtui.evaluation.modelled.warm_kernel import warm_copy


def trace(payload: bytes, device: dict[str, Any], shapes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Trace the candidate on each shape; one that cannot be followed gives its reason instead of a trace.

    ``shapes`` hold ``inputs`` (ShapeInputs) and ``context`` (ModelContext), both plain.
    """
    gpu = InterpretedGpu(from_plain(DeviceSpec, device))
    source = payload.decode()
    return [_trace_one(source, shape, gpu) for shape in shapes]


def _trace_one(source: str, shape: dict[str, Any], gpu: InterpretedGpu) -> dict[str, Any]:
    inputs = inputs_from_plain(shape["inputs"])
    try:
        with gpu():
            function = candidate_module.load(source, context_from_plain(shape["context"]))

        def on_gpu(*arguments: Any) -> Any:
            with gpu():
                return function(*arguments)

        traced = trace_call(inputs.shape, lambda: tuple(map(_made, inputs.arguments)), on_gpu)
        return {"trace": to_plain(traced)}
    except Exception as error:
        root = error.__cause__ or error
        return {"failed": f"{type(root).__name__}: {root}"[:300]}


def _made(argument: Argument) -> Any:
    if not isinstance(argument, TensorSpec):
        return argument
    return torch.zeros(argument.shape, dtype=getattr(torch, argument.dtype))


def make(fds: tuple[int, ...]) -> dict[str, Callable[..., Any]]:
    del fds
    torch.set_grad_enabled(False)
    return {"trace": trace}


def warm(fds: tuple[int, ...]) -> None:
    """Do, in a spare, what a first trace would otherwise wait for: imports, and tables built at first use."""
    del fds
    torch.set_grad_enabled(False)
    trace_call("warm", lambda: (torch.zeros(1 << 20),), warm_copy)
