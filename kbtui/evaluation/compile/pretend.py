"""Lets a candidate's own ``kernel_function`` run where there is no GPU and nothing is computed.

Tensors are fakes (sizes, strides and dtypes without values) that say they are on ``cuda:0``; what a kernel reads of
the device is answered from its description. Used in compile children; every change is to that process alone.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode

from kbtui.domain.device import DeviceSpec
from kbtui.evaluation.compile.specs import Argument, TensorSpec

_CUDA = torch.device("cuda", 0)
_HOST = torch.device("cpu")
_STREAM = SimpleNamespace(cuda_stream=0, device=_CUDA, synchronize=lambda: None)


class _SaysCuda(TorchFunctionMode):
    """Fake tensors live on the CPU, for a build without CUDA cannot index others; here they claim the GPU."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") == "__get__":
            match getattr(func.__self__, "__name__", ""):
                case "device":
                    return _CUDA
                case "is_cuda":
                    return True
                case "is_cpu":
                    return False
        if func is torch.Tensor.data_ptr:
            return address_of(args[0])
        if func is torch.Tensor.get_device:
            return 0
        if func is torch.Tensor.cuda:
            return args[0]
        return func(*map(_on_host, args), **{name: _on_host(value) for name, value in (kwargs or {}).items()})


@contextmanager
def pretended_gpu(device: DeviceSpec) -> Iterator[FakeTensorMode]:
    """Inside, torch answers as on ``device``; torch.cuda's queries are replaced for good."""
    _answer_queries(device)
    with ExitStack() as stack:
        fakes = stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        stack.enter_context(torch.no_grad())
        stack.enter_context(_SaysCuda())
        yield fakes


def build(argument: Argument) -> Any:
    """An argument of the call, a fake where it is a tensor. Inside ``pretended_gpu`` only."""
    if isinstance(argument, TensorSpec):
        return torch.empty_strided(argument.shape, argument.stride, dtype=getattr(torch, argument.dtype))
    return argument


def address_of(tensor: torch.Tensor) -> int:
    """Where it would lie were its storage at 0: Triton specialises on its alignment to 16 bytes alone."""
    with torch._C.DisableTorchFunction():
        return int(tensor.storage_offset()) * int(tensor.element_size())


def _on_host(value: Any) -> Any:
    if isinstance(value, torch.device) and value.type == "cuda":
        return _HOST
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "cpu"
    return value


def _answer_queries(device: DeviceSpec) -> None:
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
