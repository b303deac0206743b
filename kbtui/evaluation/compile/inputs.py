"""Effects: the trusted role that finds out the sizes of a problem's inputs without making them where it can."""

from collections.abc import Callable
from typing import Any

import torch

from kbtui.domain.codec import from_plain, to_plain
from kbtui.domain.problem import Problem
from kbtui.evaluation.compile.specs import Argument, ShapeInputs, TensorSpec, inputs_to_plain
from kbtui.evaluation.reference import LoadedReference, load_reference


def make(fds: tuple[int, ...]) -> dict[str, Callable[..., Any]]:
    del fds
    return {"describe": describe}


def describe(problem: dict[str, Any]) -> dict[str, Any]:
    """Inputs of every shape, and what a ModelNew needs for it. Raises what the reference raises."""
    opened: Problem = from_plain(Problem, problem)
    loaded = load_reference(opened)
    distribution = opened.spec.distributions[0]
    inputs, contexts = [], {}
    for shape in opened.spec.shapes:
        made = _make(loaded, shape.as_dict(), distribution, opened.spec.dtype_of(shape))
        inputs.append(inputs_to_plain(ShapeInputs(shape.name, tuple(_argument(value) for value in made))))
        contexts[shape.name] = to_plain(loaded.context_of(shape.as_dict()))
    return {"inputs": inputs, "contexts": contexts}


def _make(loaded: LoadedReference, dims: dict[str, int], distribution: str, dtype: str) -> tuple[Any, ...]:
    """On ``meta``; where that fails, as fakes; at last on the CPU."""
    try:
        return loaded.make_inputs(dims, 0, "meta", distribution, dtype=dtype)
    except Exception:
        pass
    from torch._subclasses.fake_tensor import FakeTensorMode

    try:
        with FakeTensorMode():
            return loaded.make_inputs(dims, 0, "cpu", distribution, dtype=dtype)
    except Exception:
        return loaded.make_inputs(dims, 0, "cpu", distribution, dtype=dtype)


def _argument(value: Any) -> Argument:
    if isinstance(value, torch.Tensor):
        # Contiguous, for that is how a candidate gets it.
        stride = torch.empty(value.shape, device="meta").stride()
        return TensorSpec(tuple(value.shape), tuple(stride), str(value.dtype).removeprefix("torch."))
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"an input of type {type(value).__name__}: inputs are tensors, numbers, text or None")
