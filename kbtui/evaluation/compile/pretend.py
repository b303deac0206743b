"""Lets a candidate's own ``kernel_function`` run where there is no GPU and nothing is computed.

Tensors are on ``meta`` (sizes, strides and dtypes without values) and say they are on ``cuda:0``; what a kernel reads
of the device is answered from its description. Used in compile children; every change is to that process alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from kbtui.domain.device import DeviceSpec
from kbtui.evaluation.compile.specs import Argument, TensorSpec

_CUDA = torch.device("cuda", 0)
_NOWHERE = torch.device("meta")
_LIKE = (torch.empty_like, torch.zeros_like, torch.ones_like, torch.full_like)
_TO_HOST = frozenset({torch.Tensor.cpu, torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.__array__})
_BASE = 1 << 44
_PARSE_TO = torch._C._nn._parse_to
_STREAM = SimpleNamespace(cuda_stream=0, device=_CUDA, synchronize=lambda: None)


class SaysCuda(TorchFunctionMode):
    """Tensors that would be on the GPU are made ``nowhere``; asked where they are, those claim the GPU."""

    def __init__(self, nowhere: torch.device = _NOWHERE, brought: list[str] | None = None) -> None:
        """``brought`` gets the names of calls that would copy values to the host, where nothing is copied."""
        self._nowhere = nowhere
        self._brought = brought if brought is not None else []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") == "__get__":
            match getattr(func.__self__, "__name__", ""):
                case "device":
                    return _CUDA if func(*args) == self._nowhere else func(*args)
                case "is_cuda":
                    with torch._C.DisableTorchFunction():
                        return bool(args[0].device == self._nowhere)
        if self._nowhere is _NOWHERE and func in _LIKE:
            return _same_size(args[0] if args else (kwargs or {})["input"], (kwargs or {}).get("dtype"))
        if func is torch.Tensor.data_ptr and self._nowhere is _NOWHERE:
            return address_of(args[0])
        if func in _TO_HOST or (func is torch.Tensor.to and "cpu" in map(str, (*args[1:2], *(kwargs or {}).values()))):
            self._brought.append(f"Tensor.{func.__name__}")
        if func is _PARSE_TO:
            # What ``Module.to`` reads of its arguments; where its tensors go is asked of each of them.
            return func(*args, **(kwargs or {}))
        if func is torch.device:
            # A device is only a name until something is made on it.
            return func(*args, **(kwargs or {}))
        if func is torch.Tensor.get_device:
            return 0
        if func is torch.Tensor.cuda:
            return args[0].to(self._nowhere)
        return func(*map(self._placed, args), **{name: self._placed(value) for name, value in (kwargs or {}).items()})

    def _placed(self, value: Any) -> Any:
        if isinstance(value, torch.device) and value.type == "cuda":
            return self._nowhere
        if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
            return self._nowhere
        return value


@contextmanager
def pretended_gpu(device: DeviceSpec) -> Iterator[None]:
    """Inside, torch answers as on ``device``; torch.cuda's queries are replaced for good."""
    answer_queries(device)
    with torch.no_grad(), SaysCuda():
        yield


def build(argument: Argument) -> Any:
    """An argument of the call; a tensor has no values."""
    if isinstance(argument, TensorSpec):
        dtype = getattr(torch, argument.dtype)
        return torch.empty_strided(argument.shape, argument.stride, dtype=dtype, device=_NOWHERE)
    return argument


def address_of(tensor: torch.Tensor) -> int:
    """Where it would lie were its storage at ``_BASE``: Triton specialises on its alignment to 16 bytes alone.

    A kernel that is given the number itself has to be compiled for one of 64 bits, as every GPU's addresses are.
    """
    with torch._C.DisableTorchFunction():
        return _BASE + int(tensor.storage_offset()) * int(tensor.element_size())


def _same_size(tensor: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    """What ``empty_like`` gives: torch's own on ``meta`` imports its symbolic shapes first, a second in each child."""
    sizes, strides = tuple(tensor.shape), tuple(tensor.stride())
    return torch.empty_strided(sizes, dense_strides(sizes, strides), dtype=dtype or tensor.dtype, device=_NOWHERE)


def dense_strides(sizes: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Strides without gaps, dimensions in the same order in memory (torch's ``preserve_format``)."""
    if 0 in sizes:
        return strides
    overlaps = any(stride == 0 and size > 1 for stride, size in zip(strides, sizes, strict=True))
    outermost_first = range(len(sizes)) if overlaps else sorted(range(len(sizes)), key=lambda i: -strides[i])
    dense, expected = [0] * len(sizes), 1
    for i in reversed(outermost_first):
        dense[i], expected = expected, expected * sizes[i]
    return tuple(dense)


def answer_queries(device: DeviceSpec) -> None:
    """Replace torch.cuda's questions about the device by this description, for good."""
    major, minor = divmod(device.arch, 10)
    properties = SimpleNamespace(
        name=device.name,
        major=major,
        minor=minor,
        multi_processor_count=device.n_sms,
        total_memory=device.memory_bytes,
        L2_cache_size=device.l2_bytes,
        shared_memory_per_block=48 << 10,
        shared_memory_per_block_optin=device.shared_per_block,
        shared_memory_per_multiprocessor=device.shared_per_sm,
        regs_per_multiprocessor=device.registers_per_sm,
        max_threads_per_multi_processor=device.max_warps_per_sm * 32,
        warp_size=32,
        is_integrated=0,
    )
    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": lambda: None,
        "_lazy_init": lambda: None,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda _: None,
        "synchronize": lambda _=None: None,
        "empty_cache": lambda: None,
        "current_stream": lambda _=None: _STREAM,
        "default_stream": lambda _=None: _STREAM,
        "get_device_properties": lambda _=None: properties,
        "get_device_capability": lambda _=None: (major, minor),
        "get_device_name": lambda _=None: device.name,
        "device": _NoDevice,
        "device_of": _NoDevice,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)


class _NoDevice:
    """``with torch.cuda.device(x.device):`` changes nothing here."""

    def __init__(self, _: Any = None) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None: ...
