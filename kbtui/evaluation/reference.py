"""Effects: runs a problem's reference source, in trusted children only; never in a process that runs a candidate.

Both formats give the same two callables. In KernelBench's, the values of Model's state_dict follow the inputs.
"""

import functools
import inspect
import os
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from kbtui.domain.kernelbench import GIVEN, with_sizes
from kbtui.domain.problem import Problem, ProblemFormat
from kbtui.evaluation.model_context import ModelContext

#: Seed under which a KernelBench Model (and a ModelNew beside it) is built.
MODEL_SEED = 0

MakeInputs = Callable[..., tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class LoadedReference:
    """A reference that can be called.

    Attributes:
        make_inputs: ``(dims, seed, device, distribution, dtype=None) -> tuple``; the same seed, the same values.
            ``device`` may be ``meta``: sizes and dtypes only. ``dtype`` is a name such as ``float16``.
        reference: ``(*inputs) -> output``, or a tuple of outputs.
        context_of: ``(dims) -> ModelContext`` for a candidate that brings a ModelNew.
        names_of: ``(dims) -> names`` of the inputs, as a person would call them.
    """

    make_inputs: MakeInputs
    reference: Callable[..., Any]
    context_of: Callable[[Mapping[str, int]], ModelContext]
    names_of: Callable[[Mapping[str, int]], tuple[str, ...]]


def load_reference(problem: Problem) -> LoadedReference:
    """Import a problem's reference. Raises whatever its source raises, AttributeError where a function is missing."""
    match problem.format:
        case ProblemFormat.FOLDER:
            return _load_folder(problem)
        case ProblemFormat.KERNELBENCH:
            return _load_kernelbench(problem)


def _load_folder(problem: Problem) -> LoadedReference:
    # A reference may have helper modules beside it.
    if problem.path not in sys.path:
        sys.path.append(problem.path)
    module = _execute(problem.reference_source, "kbtui_reference", str(Path(problem.path) / "reference.py"))
    takes_dtype = "dtype" in inspect.signature(module.make_inputs).parameters

    def make_inputs(
        dims: Mapping[str, int], seed: int, device: str, distribution: str, dtype: str | None = None
    ) -> tuple[Any, ...]:
        generator = None if device == "meta" else torch.Generator(device).manual_seed(seed)
        extra = {"dtype": dtype or problem.spec.dtype} if takes_dtype else {}
        made = module.make_inputs(dict(dims), generator, device, distribution, **extra)
        if isinstance(made, torch.Tensor):
            raise TypeError("make_inputs returned a tensor, not a tuple of inputs; write `return (x,)`")
        return tuple(made)

    names = _parameter_names(module.reference)
    return LoadedReference(make_inputs, module.reference, lambda _: ModelContext(), lambda _: names)


def _load_kernelbench(problem: Problem) -> LoadedReference:
    models = _Models(problem)
    return LoadedReference(models.make_inputs, models.reference, models.context_of, models.names_of)


class _Models:
    """One Model per sizes: a shape is the file with other constants."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._model_of_shapes: dict[tuple[Any, ...], torch.nn.Module] = {}
        self._module_of = functools.lru_cache(maxsize=8)(self._load)

    def make_inputs(
        self, dims: Mapping[str, int], seed: int, device: str, distribution: str, dtype: str | None = None
    ) -> tuple[Any, ...]:
        del dtype  # the file's own get_inputs decides
        module = self._module_of(tuple(dims.items()))
        torch.manual_seed(seed)
        with torch.device(device):
            inputs = tuple(module.get_inputs())
        inputs = tuple(x.to(device) if isinstance(x, torch.Tensor) else x for x in inputs)
        if distribution != GIVEN:
            inputs = tuple(_redraw(x, seed + i, device, distribution) for i, x in enumerate(inputs))
        model = self._model(module, device)
        self._model_of_shapes[_shapes(inputs)] = model
        return (*inputs, *model.state_dict().values())

    def reference(self, *inputs: Any) -> Any:
        model = next(iter(self._model_of_shapes.values()))
        n_state = len(model.state_dict())
        given = inputs[: len(inputs) - n_state]
        model = self._model_of_shapes.get(_shapes(given), model)
        names = list(model.state_dict())
        # Clones, for a forward in training mode updates running statistics in place.
        state = {name: value.clone() for name, value in zip(names, inputs[len(given) :], strict=True)}
        return torch.func.functional_call(model, state, given)

    def context_of(self, dims: Mapping[str, int]) -> ModelContext:
        module = self._module_of(tuple(dims.items()))
        names = tuple(self._model(module, "meta").state_dict())
        return ModelContext(tuple(module.get_init_inputs()), names, MODEL_SEED)

    def names_of(self, dims: Mapping[str, int]) -> tuple[str, ...]:
        module = self._module_of(tuple(dims.items()))
        state = self._model(module, "meta").state_dict()
        return (*_parameter_names(module.Model.forward)[1:], *state)

    def _load(self, dims: tuple[tuple[str, int], ...]) -> types.ModuleType:
        source = with_sizes(self._problem.reference_source, dict(dims))
        return _execute(source, f"kbtui_reference_{abs(hash(dims))}", self._problem.path)

    def _model(self, module: types.ModuleType, device: str) -> torch.nn.Module:
        torch.manual_seed(MODEL_SEED)
        if device == "meta":
            with torch.device("meta"):
                model: torch.nn.Module = module.Model(*module.get_init_inputs())
            return model
        # Built on the CPU and moved: the same weights on every device.
        model = module.Model(*module.get_init_inputs())
        return model.to(device)


def _parameter_names(function: Callable[..., Any]) -> tuple[str, ...]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return tuple(name for name, p in inspect.signature(function).parameters.items() if p.kind in kinds)


def _shapes(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(tuple(x.shape) if isinstance(x, torch.Tensor) else x for x in inputs)


def _redraw(value: Any, seed: int, device: str, distribution: str) -> Any:
    """Another distribution for a floating input of the same size."""
    if not (isinstance(value, torch.Tensor) and value.is_floating_point()):
        return value
    from sample_kernels.distributions import draw

    generator = None if device == "meta" else torch.Generator(device).manual_seed(seed)
    name = str(value.dtype).removeprefix("torch.")
    return draw(distribution, tuple(value.shape), generator=generator, device=device, dtype=name)


def _execute(source: str, name: str, path: str) -> types.ModuleType:
    module = types.ModuleType(name)
    module.__file__ = path
    sys.modules[name] = module
    exec(compile(source, path if os.path.isabs(path) else f"<{name}>", "exec"), module.__dict__)
    return module
