"""Effects: imports a candidate's source, in confined children only.

The source goes into a file first, for Triton reads a kernel's text from the file it was defined in.
"""

import ast
import contextlib
import hashlib
import linecache
import sys
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from kbtui.evaluation.model_context import ModelContext
from kbtui.evaluation.process.places import CANDIDATE_FILE_PREFIX

ENTRY_POINT, MODEL_ENTRY_POINT = "kernel_function", "ModelNew"


class NoEntryPoint(Exception):  # noqa: N818
    """The source defines neither kernel_function nor ModelNew."""


def load(source: str, context: ModelContext | None = None) -> Callable[..., Any]:
    """The candidate as ``(*inputs) -> output``. Raises NoEntryPoint, SyntaxError, or what its import raises.

    A ModelNew is built with the reference's constructor arguments, under its seed; its state is the reference's,
    taken from the last inputs of each call.
    """
    module = execute(source)
    entry = getattr(module, ENTRY_POINT, None)
    if entry is not None:
        return entry  # type: ignore[no-any-return]
    if not hasattr(module, MODEL_ENTRY_POINT):
        raise NoEntryPoint(f"the candidate defines no {ENTRY_POINT}(*inputs)")
    return _ModelEntry(module.ModelNew, context or ModelContext())


def needs_context(source: str) -> bool:
    """Whether the source's entry point is a ModelNew, which cannot be built before the reference's arguments are known.

    False for what does not parse: loading it will say so.
    """
    try:
        names = {n.name for n in ast.parse(source).body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return MODEL_ENTRY_POINT in names and ENTRY_POINT not in names


def execute(source: str) -> types.ModuleType:
    """Import the source as a module of its own, from a file in the scratch directory."""
    name = CANDIDATE_FILE_PREFIX + hashlib.sha256(source.encode()).hexdigest()[:12]
    path = Path(tempfile.gettempdir()) / f"{name}.py"
    with contextlib.suppress(OSError):
        path.write_text(source, encoding="utf-8")
    linecache.cache[str(path)] = (len(source), None, source.splitlines(keepends=True), str(path))
    module = types.ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    exec(compile(source, str(path), "exec"), module.__dict__)
    return module


class _ModelEntry:
    """Calls a ModelNew with state that lives in the inputs: no copy, so that values refilled in place are seen."""

    def __init__(self, model_class: Any, context: ModelContext) -> None:
        torch.manual_seed(context.seed)
        self._model = model_class(*context.init_inputs)
        self._names = context.state_names
        missing = sorted(set(self._names) - set(self._model.state_dict()))
        if missing:
            raise NoEntryPoint(f"ModelNew lacks the reference's {', '.join(missing)}; keep Model's parameter names")
        self._bound: tuple[int, ...] | None = None

    def __call__(self, *inputs: Any) -> Any:
        n_inputs = len(inputs) - len(self._names)
        state = tuple(id(value) for value in inputs[n_inputs:])
        if state != self._bound:
            self._bind(inputs, n_inputs)
            self._bound = state
        return self._model(*inputs[:n_inputs])

    def _bind(self, inputs: tuple[Any, ...], n_inputs: int) -> None:
        if self._bound is None:
            device = next((x.device for x in inputs if isinstance(x, torch.Tensor)), None)
            self._model.to(device)
        for name, value in zip(self._names, inputs[n_inputs:], strict=True):
            owner, _, leaf = name.rpartition(".")
            module = self._model.get_submodule(owner)
            if leaf in module._parameters:
                module._parameters[leaf] = torch.nn.Parameter(value, requires_grad=False)
            else:
                module._buffers[leaf] = value
