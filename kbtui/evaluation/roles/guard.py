"""Effects: watches every torch operation of one call; computing ones outside the policy are named, empties poisoned.

Views, allocations, constant fills and moves of data (copies, layout and dtype changes) are always allowed: they
compute nothing, and what they cost is timed.
"""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from kbtui.evaluation.dispatch import PlainDispatch
from kbtui.evaluation.roles.poison import poison

UNINITIALISED = frozenset(
    {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_"}
)
ALLOCATES = UNINITIALISED | {
    "arange", "eye", "fill", "fill_", "full", "full_like", "lift_fresh", "new_full", "new_ones", "new_zeros", "ones",
    "ones_like", "scalar_tensor", "zero", "zero_", "zeros", "zeros_like",
}  # fmt: skip
MOVES = frozenset(
    {"_reshape_alias", "_reshape_copy", "_to_copy", "_unsafe_view", "cat", "clone", "constant_pad_nd", "contiguous",
     "copy_", "detach", "is_same_size", "record_stream", "set_", "stack", "to"}
)  # fmt: skip


class Watch(PlainDispatch):
    """Collects the names of operations that compute outside ``allowed`` (names as ``mm`` or ``aten.mm``)."""

    def __init__(self, device: str, allowed: Iterable[str] = (), poison_empties: bool = True) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.device = device
        self.allowed = frozenset(name.removeprefix("torch.").removeprefix("aten.") for name in allowed)
        self.poison_empties = poison_empties
        self.forbidden: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # Here tensors are where they are, whatever a mode above has them say.
        with torch._C.DisableTorchFunction():
            return self._watched(func, args, kwargs or {})

    def _watched(self, func: Any, args: Any, kwargs: Any) -> Any:
        name = func._schema.name.split("::")[-1]
        if not self._permitted(func, name):
            self.forbidden.append(str(func))
        result = func(*args, **kwargs)
        if isinstance(result, torch.Tensor):
            if result.device.type != self.device:
                self.forbidden.append(f"{func} on {result.device.type}")
            elif self.poison_empties and name in UNINITIALISED:
                poison(result)
        return result

    def _permitted(self, func: Any, name: str) -> bool:
        if name in ALLOCATES or name in MOVES or name in self.allowed:
            return True
        return bool(func.is_view) if hasattr(func, "is_view") else _is_view(func)


def _is_view(func: Any) -> bool:
    """A result that aliases an argument without writing it."""
    return any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns)


@contextlib.contextmanager
def unwatched() -> Iterator[None]:
    """Triton's own use of torch during a launch is not the candidate's."""
    with _disable_current_modes():
        yield


def harness_objects() -> dict[str, int]:
    """The identity of everything of torch and Triton that a patched method would stand in for."""
    from triton.compiler.compiler import CompiledKernel
    from triton.runtime.interpreter import GridExecutor
    from triton.runtime.jit import JITFunction, KernelInterface

    classes = (torch.Tensor, torch.cuda.Event, CompiledKernel, GridExecutor, JITFunction, KernelInterface)
    # A class's names with those it inherits: a patch may stand before what it hides.
    owned = {c.__name__: {n: v for base in reversed(c.__mro__) for n, v in vars(base).items()} for c in classes}
    owned |= {"torch": vars(torch), "torch.cuda": vars(torch.cuda)}
    return {
        f"{owner}.{name}": id(value)
        for owner, names in owned.items()
        for name, value in tuple(names.items())
        if callable(value) or isinstance(value, property)
    }


def global_flags() -> dict[str, Any]:
    """torch's process-wide switches that change results or times."""
    return {
        "default dtype": str(torch.get_default_dtype()),
        "grad mode": torch.is_grad_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "float32 matmul precision": torch.get_float32_matmul_precision(),
        "cudnn.benchmark": torch.backends.cudnn.benchmark,
        "cudnn.enabled": torch.backends.cudnn.enabled,
        "threads": torch.get_num_threads(),
        "anomaly mode": torch.is_anomaly_enabled(),
    }
