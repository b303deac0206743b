"""PyTorch without the work: big tensors have a size but no memory, and operations on them only their shapes.

Effects: maps anonymous memory that is never touched. For the tracing child only.
"""

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._pytree import tree_map

from kbtui.evaluation.dispatch import PlainDispatch
from kbtui.evaluation.modelled.trace import TorchOp

#: Tensors up to this size are real: masks, offsets, small tables whose values may steer a kernel.
REAL_BYTES = 1 << 16
_MAP_NORESERVE = 0x4000
_ALLOCATES = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
_READS_VALUES = {"_local_scalar_dense", "equal", "is_nonzero", "item"}


def lazy_tensor(size: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """A CPU tensor of zeros whose pages do not exist until they are touched.

    Shared anonymous memory, since private memory would count towards RLIMIT_DATA before it exists.
    """
    last = sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if all(size) else -1
    n_bytes = max(last + 1, 1) * dtype.itemsize
    pages = mmap.mmap(-1, n_bytes, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)
    return torch.frombuffer(pages, dtype=dtype).as_strided(size, stride)


class LazyTensors(PlainDispatch):
    """Operations whose tensors are all small run; others give an untouched tensor of the right shape.

    ``ops`` lists the computing ones in order, with the bytes they would move.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.ops: list[TorchOp] = []
        self.counting = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        if func.is_view or name in _READS_VALUES:
            return func(*args, **kwargs)
        result = self._run(func, name, args, kwargs)
        if self.counting and name not in _ALLOCATES:
            moved = sum(_bytes(t) for t in (*_tensors(args), *_tensors(kwargs), *_tensors(result)))
            self.ops.append(TorchOp(name, float(moved)))
        return result

    def _run(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        inputs = [*_tensors(args), *_tensors(kwargs)]
        described = func(*tree_map(_to_meta, args), **_meta_device(tree_map(_to_meta, kwargs)))
        if all(_bytes(t) <= REAL_BYTES for t in (*inputs, *_tensors(described))):
            return func(*args, **({**kwargs, "device": "cpu"} if "device" in kwargs else kwargs))
        if func._schema.is_mutable:
            return kwargs.get("out", args[0] if args else None)
        return tree_map(_from_meta, described)


@contextmanager
def counting(mode: LazyTensors) -> Iterator[None]:
    """Count the operations of this block: the candidate's call, not the making of its inputs."""
    mode.counting = True
    try:
        yield
    finally:
        mode.counting = False


def _tensors(tree: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    tree_map(lambda leaf: found.append(leaf) if isinstance(leaf, torch.Tensor) else None, tree)
    return found


def _bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _to_meta(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return torch.empty_strided(leaf.size(), leaf.stride(), dtype=leaf.dtype, device="meta")
    return None if isinstance(leaf, torch.Generator) else leaf


def _meta_device(kwargs: Any) -> Any:
    return {**kwargs, "device": "meta"} if "device" in kwargs else kwargs


def _from_meta(leaf: Any) -> Any:
    if not isinstance(leaf, torch.Tensor) or leaf.device.type != "meta":
        return leaf
    return lazy_tensor(tuple(leaf.size()), tuple(leaf.stride()), leaf.dtype)
