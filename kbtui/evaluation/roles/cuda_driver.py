"""Effects: the calls of the CUDA driver that share device memory between processes, through ctypes.

torch's own sharing counts references in files under /dev/shm, which the sandbox does not have.
"""

import ctypes
from functools import cache
from typing import Any

from kbtui.evaluation.process.failures import HarnessError

HANDLE_BYTES = 64
_LAZY_PEER_ACCESS = 1


class DriverError(HarnessError):
    """A driver call failed; the message names the call and the driver's error."""


class IpcHandle(ctypes.Structure):
    """CUipcMemHandle."""

    _fields_ = [("reserved", ctypes.c_ubyte * HANDLE_BYTES)]


@cache
def library() -> Any:
    """libcuda. Raises OSError where there is no driver."""
    return ctypes.CDLL("libcuda.so.1")


def allocate(n_bytes: int) -> int:
    """Address of fresh device memory in the current context. Raises DriverError."""
    address = ctypes.c_uint64()
    _call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(n_bytes))
    return int(address.value)


def free(address: int) -> None:
    _call("cuMemFree_v2", ctypes.c_uint64(address))


def export_handle(address: int) -> bytes:
    """64 bytes with which another process on this device opens the allocation."""
    handle = IpcHandle()
    _call("cuIpcGetMemHandle", ctypes.byref(handle), ctypes.c_uint64(address))
    return bytes(handle.reserved)


def open_handle(exported: bytes) -> int:
    """Address of another process's allocation in this one. Raises DriverError."""
    address = ctypes.c_uint64()
    handle = IpcHandle((ctypes.c_ubyte * HANDLE_BYTES).from_buffer_copy(exported))
    _call("cuIpcOpenMemHandle_v2", ctypes.byref(address), handle, ctypes.c_uint(_LAZY_PEER_ACCESS))
    return int(address.value)


def _call(name: str, *arguments: Any) -> None:
    status = getattr(library(), name)(*arguments)
    if status != 0:
        raise DriverError(f"{name}: {_error_name(status)}")


def _error_name(status: int) -> str:
    text = ctypes.c_char_p()
    if library().cuGetErrorName(status, ctypes.byref(text)) == 0 and text.value:
        return text.value.decode()
    return f"error {status}"
