"""The reference and the kernels."""

import ast
import importlib.util
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from kbtui.leaving.alone.small_parts import HERE, Function, sizes_of


class Problem:
    """The reference and its inputs, on one device: a folder's two functions, or a file in KernelBench's format."""

    def __init__(self, plan: dict[str, Any], device: str) -> None:
        self.device, self.tolerance = device, plan["tolerance"]
        self.path = HERE / plan["reference"]
        self._kernelbench = plan["format"] == "kernelbench"
        self._dtype = plan["dtype"]
        self._models: dict[Any, Any] = {}
        sys.path.insert(0, str(self.path.parent))
        self._module = None if self._kernelbench else load_module(self.path, "reference_of_the_run")

    def inputs(self, where: dict[str, Any]) -> tuple[Any, ...]:
        """The tensors of one check: the same seed, the same values as in the search."""
        made = self._model_inputs(where) if self._kernelbench else self._drawn(where)
        return tuple(x.contiguous() if isinstance(x, torch.Tensor) else x for x in made)

    def reference(self, *inputs: Any) -> Any:
        if self._module is not None:
            return self._module.reference(*inputs)
        model, names = self._model_of(inputs)
        given = inputs[: len(inputs) - len(names)]
        state = {n: v.clone() for n, v in zip(names, inputs[len(given) :], strict=True)}
        return torch.func.functional_call(model, state, given)

    def build(self, model_class: Any, inputs: Sequence[Any]) -> Function:
        """A ModelNew: built as Model was, with the state that follows the inputs."""
        model, names = self._model_of(inputs)
        torch.manual_seed(0)
        made = model_class(*model.kb_init).to(self.device)

        def call(*given: Any) -> Any:
            n = len(given) - len(names)
            return torch.func.functional_call(made, dict(zip(names, given[n:], strict=True)), given[:n])

        return call

    def _drawn(self, where: dict[str, Any]) -> tuple[Any, ...]:
        assert self._module is not None
        generator = torch.Generator(self.device).manual_seed(where["seed"])
        takes = self._module.make_inputs.__code__.co_varnames[: self._module.make_inputs.__code__.co_argcount]
        extra = {"dtype": where["dtype"] or self._dtype} if "dtype" in takes else {}
        made = self._module.make_inputs(dict(where["dims"]), generator, self.device, where["distribution"], **extra)
        return tuple(made)

    def _model_inputs(self, where: dict[str, Any]) -> tuple[Any, ...]:
        module = self._sized(tuple(where["dims"].items()))
        torch.manual_seed(where["seed"])
        with torch.device(self.device):
            inputs = tuple(module.get_inputs())
        inputs = tuple(x.to(self.device) if isinstance(x, torch.Tensor) else x for x in inputs)
        torch.manual_seed(0)
        init = module.get_init_inputs()
        model = module.Model(*init).to(self.device)
        model.kb_init = init
        self._models[sizes_of(inputs)] = model
        return (*inputs, *model.state_dict().values())

    def _sized(self, dims: tuple[tuple[str, int], ...]) -> types.ModuleType:
        """The file with its whole-number constants of these names set to a shape's sizes."""
        source, sizes = self.path.read_text(encoding="utf-8"), dict(dims)
        lines = source.splitlines()
        for node in ast.parse(source).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in sizes:
                lines[node.lineno - 1] = f"{node.targets[0].id} = {sizes[node.targets[0].id]}"
                for extra in range(node.lineno, node.end_lineno or node.lineno):
                    lines[extra] = ""
        module = types.ModuleType("reference_of_the_run")
        exec(compile("\n".join(lines) + "\n", str(self.path), "exec"), module.__dict__)
        return module

    def _model_of(self, inputs: Sequence[Any]) -> tuple[Any, list[str]]:
        for sizes, model in self._models.items():
            names = list(model.state_dict())
            if sizes_of(inputs[: len(inputs) - len(names)]) == sizes:
                return model, names
        raise RuntimeError("the reference has not made these inputs")


def load_module(path: Path, name: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def load_kernel(path: Path, problem: Problem) -> Function:
    """``kernel_function``, or a ``ModelNew`` built when its first inputs are there."""
    module = load_module(path, path.stem + "_of_the_run")
    if hasattr(module, "kernel_function"):
        return module.kernel_function  # type: ignore[no-any-return]
    built: dict[Any, Function] = {}

    def call(*inputs: Any) -> Any:
        key = sizes_of(inputs)
        built[key] = built.get(key) or problem.build(module.ModelNew, inputs)
        return built[key](*inputs)

    return call
