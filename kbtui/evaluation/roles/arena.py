"""Effects: maps memory that the referee and a candidate share; inputs go one way, outputs the other.

On a GPU the referee allocates it and exports a handle; on the CPU both map one sealed memfd.
"""

import mmap
import os
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from kbtui.evaluation.roles import cuda_driver
from kbtui.evaluation.roles.layout import Argument, Constant, Slot

#: Bytes. With smaller pages addresses of 1 GiB take more than the GPU can translate from memory at hand.
LARGE_PAGE = 2 << 20


class Arena(Protocol):
    """Shared bytes. ``address`` and ``n_bytes`` are this process's mapping, for the alias check."""

    address: int
    n_bytes: int
    device: str

    def bytes(self, offset: int, n_bytes: int) -> torch.Tensor:
        """A uint8 view; raises ValueError outside the arena."""
        ...


def tensor_at(arena: Arena, slot: Slot) -> torch.Tensor:
    """The slot as a tensor over shared memory."""
    dtype: torch.dtype = getattr(torch, slot.dtype)
    if slot.n_bytes == 0:
        return torch.empty(slot.shape, dtype=dtype, device=arena.device)
    return arena.bytes(slot.offset, slot.n_bytes).view(dtype).view(slot.shape)


def argument_at(arena: Arena, argument: Argument) -> Any:
    match argument:
        case Slot():
            return tensor_at(arena, argument)
        case Constant(value):
            return value


class CpuArena:
    """A memfd mapped here. Close-on-exec, sealed by its maker so that nobody can shrink it under a reader."""

    device = "cpu"

    def __init__(self, fd: int) -> None:
        self.n_bytes = os.fstat(fd).st_size
        self._map = mmap.mmap(fd, self.n_bytes)
        self._whole = torch.frombuffer(self._map, dtype=torch.uint8)
        self.address = self._whole.data_ptr()

    def bytes(self, offset: int, n_bytes: int) -> torch.Tensor:
        _within(self, offset, n_bytes)
        return self._whole[offset : offset + n_bytes]


@dataclass(frozen=True, slots=True)
class _DeviceBytes:
    """What torch.as_tensor needs to see foreign device memory (the CUDA array interface, version 3)."""

    address: int
    n_bytes: int

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": (self.n_bytes,), "typestr": "|u1", "data": (self.address, False), "version": 3, "strides": None,
        }  # fmt: skip


class CudaArena:
    """Device memory: allocated here (``handle`` exports it) or opened from another process's handle."""

    device = "cuda"

    def __init__(self, address: int, n_bytes: int, handle: bytes) -> None:
        self.address, self.n_bytes, self.handle = address, n_bytes, handle
        self._whole = torch.as_tensor(_DeviceBytes(address, n_bytes), device="cuda")
        if self._whole.data_ptr() != address:
            raise cuda_driver.DriverError("torch copied the arena instead of viewing it")

    @classmethod
    def allocate(cls, n_bytes: int) -> "CudaArena":
        _have_context()
        n_bytes = whole_pages(n_bytes)
        address = cuda_driver.allocate(n_bytes)
        return cls(address, n_bytes, cuda_driver.export_handle(address))

    @classmethod
    def open(cls, handle: bytes, n_bytes: int) -> "CudaArena":
        _have_context()
        return cls(cuda_driver.open_handle(handle), n_bytes, handle)

    def bytes(self, offset: int, n_bytes: int) -> torch.Tensor:
        _within(self, offset, n_bytes)
        return self._whole[offset : offset + n_bytes]


def whole_pages(n_bytes: int) -> int:
    """The driver maps an allocation in large pages only where it is made of whole ones."""
    return -(-n_bytes // LARGE_PAGE) * LARGE_PAGE


def _have_context() -> None:
    """The driver's calls work in torch's context, which torch makes at its first use of the device."""
    torch.zeros(1, device="cuda")


def _within(arena: Arena, offset: int, n_bytes: int) -> None:
    if offset < 0 or offset + n_bytes > arena.n_bytes:
        raise ValueError(f"{n_bytes} bytes at {offset} lie outside an arena of {arena.n_bytes}")
