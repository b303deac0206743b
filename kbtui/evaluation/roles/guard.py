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
from kbtui.evaluation.roles.launches import Launch
from kbtui.evaluation.roles.poison import poison
from kbtui.evaluation.roles.provenance import Provenance

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


#: Makes a tensor of a Python constant; torch makes that one out of sight.
FROM_HOST = frozenset({"lift_fresh", "lift_fresh_copy"})


class Watch(PlainDispatch):
    """Collects the names of operations that compute outside ``allowed`` (names as ``mm`` or ``aten.mm``).

    ``provenance`` is told of everything an operation reads and writes.
    """

    def __init__(self, device: str, allowed: Iterable[str] = (), provenance: Provenance | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.device = device
        self.allowed = frozenset(name.removeprefix("torch.").removeprefix("aten.") for name in allowed)
        self.provenance = provenance
        self.forbidden: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # Here tensors are where they are, whatever a mode above has them say.
        with torch._C.DisableTorchFunction():
            return self._watched(func, args, kwargs or {})

    def _watched(self, func: Any, args: Any, kwargs: Any) -> Any:
        name = func._schema.name.split("::")[-1]
        if not self._permitted(func, name):
            self.forbidden.append(str(func))
        if self.provenance is not None:
            self.provenance.before((args, kwargs), from_host=name in FROM_HOST)
        result = func(*args, **kwargs)
        if isinstance(result, torch.Tensor):
            if result.device.type != self.device:
                self.forbidden.append(f"{func} on {result.device.type}")
            elif name in UNINITIALISED:
                poison(result)
        if self.provenance is not None:
            self.provenance.wrote((result, args, kwargs) if func._schema.is_mutable else result)
        return result

    def _permitted(self, func: Any, name: str) -> bool:
        if name in ALLOCATES or name in MOVES or name in self.allowed:
            return True
        return bool(func.is_view) if hasattr(func, "is_view") else _is_view(func)


def _is_view(func: Any) -> bool:
    """A result that aliases an argument without writing it."""
    return any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns)


@contextlib.contextmanager
def seen(launch: Launch, provenance: Provenance) -> Iterator[None]:
    """Triton's own use of torch during a launch is not the candidate's; what the launch reads and writes is noted."""
    with _disable_current_modes():
        provenance.before(launch.arguments)
        provenance.look_at_inputs()
        yield
        provenance.launched(launch.arguments)


@contextlib.contextmanager
def unwatched(_: Launch) -> Iterator[None]:
    """A launch of which nothing is noted."""
    with _disable_current_modes():
        yield
