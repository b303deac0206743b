"""Effects: the role of the children that describe a problem's inputs and trace a candidate, under the interpreter.

``describe`` imports the reference and runs in a trusted child; ``trace`` imports a candidate and runs in a confined
one. Neither makes a value: inputs cross as shapes and dtypes.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from kbtui.domain.codec import from_plain, to_plain
from kbtui.domain.problem import Problem
from kbtui.evaluation.modelled.lazy import REAL_BYTES, LazyTensors
from kbtui.evaluation.modelled.trace import TensorSpec
from kbtui.evaluation.modelled.tracer import trace_call


def describe(problem: dict[str, Any], shapes: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The inputs of each shape, in order: a tensor's shape and dtype, or a plain value."""
    from kbtui.evaluation.reference import load_reference

    opened: Problem = from_plain(Problem, problem)
    reference = load_reference(opened)
    distribution = opened.spec.distributions[0]
    described = []
    for shape in shapes:
        dims = {str(name): int(size) for name, size in shape["dims"]}
        with LazyTensors():
            made = reference.make_inputs(dims, 0, "cpu", distribution, dtype=shape["dtype"])
        described.append([_described(value) for value in made])
    return described


def trace(payload: bytes, shapes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Trace the candidate on each shape; one that cannot be followed gives its reason instead of a trace."""
    from kbtui.evaluation import candidate_module

    function = candidate_module.load(payload.decode())
    return [_trace_one(function, shape["name"], shape["inputs"]) for shape in shapes]


def _trace_one(function: Callable[..., Any], name: str, inputs: list[dict[str, Any]]) -> dict[str, Any]:
    try:
        return {"trace": to_plain(trace_call(name, partial(_make, inputs), function))}
    except Exception as error:
        root = error.__cause__ or error
        return {"failed": f"{type(root).__name__}: {root}"[:300]}


def _described(value: Any) -> dict[str, Any]:
    if not isinstance(value, torch.Tensor):
        return {"value": value}
    small = value.numel() * value.element_size() <= REAL_BYTES and not value.is_floating_point()
    values = value.reshape(-1).tolist() if small else None
    return {"tensor": to_plain(TensorSpec(tuple(value.shape), str(value.dtype).removeprefix("torch."))), "of": values}


def _make(inputs: list[dict[str, Any]]) -> tuple[Any, ...]:
    return tuple(_made(i) for i in inputs)


def _made(described: dict[str, Any]) -> Any:
    if "tensor" not in described:
        return described["value"]
    spec: TensorSpec = from_plain(TensorSpec, described["tensor"])
    dtype: torch.dtype = getattr(torch, spec.dtype)
    if described["of"] is not None:
        return torch.tensor(described["of"], dtype=dtype).reshape(spec.shape)
    return torch.zeros(spec.shape, dtype=dtype)


def make(fds: tuple[int, ...]) -> dict[str, Callable[..., Any]]:
    del fds
    torch.set_grad_enabled(False)
    return {"describe": describe, "trace": trace}


def warm(fds: tuple[int, ...]) -> None:
    """Make the first trace of a spare as fast as the second: tables that torch and Triton build at first use."""
    import triton

    del fds, triton
    with LazyTensors():
        torch.empty(1 << 20)
