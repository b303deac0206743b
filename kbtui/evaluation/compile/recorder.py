"""A Triton driver for a GPU that is not there: every launch is compiled for it and written down, nothing runs.

Used in compile children. The path through Triton is the real one up to the launch itself, so specialisation, options,
cache keys and refusals (shared memory) are those of the machine that has the GPU.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import compiler as triton_compiler
from triton.runtime import driver, jit

from kbtui.domain.device import DeviceSpec
from kbtui.domain.profile import KernelResources
from kbtui.evaluation.compile import launchers
from kbtui.evaluation.compile.listing import Listing, read_listing
from kbtui.evaluation.compile.occupancy import occupancy
from kbtui.evaluation.compile.pretend import address_of
from kbtui.evaluation.compile.report import Launch

_LOG_SUFFIX = ".ptxas.log"


class Pointer:
    """All that Triton asks of a tensor argument before a launch."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.dtype = tensor.dtype
        self._address = address_of(tensor)

    def data_ptr(self) -> int:
        return self._address


def _pointer(argument: Any) -> Any:
    if not isinstance(argument, torch.Tensor):
        return argument
    if not argument.is_cuda:
        # As a launch on the GPU says it.
        raise ValueError("Pointer argument cannot be accessed from Triton (cpu tensor?); make it on the input's device")
    return Pointer(argument)


class Recorder:
    """What was compiled and launched. ``launchers``: what each distinct launcher needs to be built."""

    def __init__(self, device: DeviceSpec, cache: Path) -> None:
        self.device = device
        self.launches: list[Launch] = []
        self.resources: dict[tuple[Any, ...], KernelResources] = {}
        self.launchers: dict[str, dict[str, Any]] = {}
        self.shape = ""
        self.tuning = False
        self._cache = cache
        self._ptxas_log = ""
        self._listings: dict[str, Listing] = {}

    def install(self) -> None:
        """Make Triton use this recorder, for the rest of the process."""
        driver.set_active(_Driver(self))
        self._keep_ptxas_logs()
        self._see_kernels()
        self._see_arguments()

    def launched(self, source: Any, metadata: Any, grid: tuple[int, int, int]) -> None:
        launch = Launch(
            self.shape, metadata.name, grid, metadata.num_warps, metadata.num_stages,
            constexprs=_constexprs(source), arguments=_kinds(source), tuning=self.tuning,
        )  # fmt: skip
        self.launches.append(launch)
        self.resources.setdefault((metadata.hash, self.shape, grid), self._resources(launch, metadata))

    def launcher_needed(self, source: Any, metadata: Any) -> None:
        description = launchers.described(source, metadata)
        self.launchers[repr(description)] = description

    def _resources(self, launch: Launch, metadata: Any) -> KernelResources:
        listing = self._listings[metadata.hash]
        fits = occupancy(
            self.device, registers=listing.registers, shared_bytes=metadata.shared, num_warps=metadata.num_warps
        )
        return KernelResources(
            kernel=launch.kernel,
            shape=launch.shape,
            grid=launch.grid,
            num_warps=launch.num_warps,
            num_stages=launch.num_stages,
            registers=listing.registers,
            spill_bytes=listing.spill_bytes,
            shared_bytes=metadata.shared,
            occupancy=fits.fraction,
            limiter=fits.limiter,
            mma=listing.mma,
            load_bytes_max=listing.load_bytes_max,
            mix=listing.mix,
        )

    def _keep_ptxas_logs(self) -> None:
        from triton.backends.nvidia import compiler as nvidia

        def keep(text: object = "", *_: Any, **__: Any) -> None:
            if "ptxas info" in str(text):
                self._ptxas_log = str(text)

        nvidia.print = keep
        triton.knobs.nvidia.dump_ptxas_log = True

    def _see_kernels(self) -> None:
        kernel_class = triton_compiler.CompiledKernel
        original = kernel_class.__init__

        def seen(kernel: Any, src: Any, metadata_group: Any, kernel_hash: str) -> None:
            original(kernel, src, metadata_group, kernel_hash)
            self._listings[kernel_hash] = read_listing(self._log_of(kernel_hash), kernel.asm["ptx"])

        kernel_class.__init__ = seen

    def _log_of(self, kernel_hash: str) -> str:
        """ptxas speaks once; a kernel found in the cache left its log beside it."""
        path = self._cache / f"{kernel_hash}{_LOG_SUFFIX}"
        if self._ptxas_log:
            path.write_text(self._ptxas_log)
            self._ptxas_log = ""
        return path.read_text() if path.exists() else ""

    def _see_arguments(self) -> None:
        original = jit.JITFunction.run

        def run(function: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            args = tuple(map(_pointer, args))
            kwargs = {k: _pointer(v) for k, v in kwargs.items()}
            with torch._C.DisableTorchFunction():
                return original(function, *args, grid=grid, warmup=warmup, **kwargs)

        jit.JITFunction.run = run


class _Launcher:
    """Stands for the compiled launcher: writes the launch down."""

    def __init__(self, recorder: Recorder, source: Any, metadata: Any) -> None:
        self._recorder, self._source, self._metadata = recorder, source, metadata
        recorder.launcher_needed(source, metadata)

    def __call__(self, grid_x: int, grid_y: int, grid_z: int, *_: Any) -> None:
        self._recorder.launched(self._source, self._metadata, (int(grid_x), int(grid_y), int(grid_z)))


class _Driver:
    """The part of Triton's driver interface that compiling and launching touch (3.6)."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.utils = Utils(recorder.device)
        self.launcher_cls = lambda source, metadata: _Launcher(recorder, source, metadata)

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self._recorder.device.arch, 32)

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cuda", 0)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, _: int) -> None: ...

    def get_current_stream(self, _: int | None = None) -> int:
        return 0

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_device_capability(self, _: int = 0) -> tuple[int, int]:
        return divmod(self._recorder.device.arch, 10)

    def get_benchmarker(self) -> Callable[..., list[float]]:
        return self._benchmark

    def get_empty_cache_for_benchmark(self) -> None: ...

    def clear_cache(self, _: Any) -> None: ...

    def _benchmark(self, kernel_call: Callable[[], Any], quantiles: Sequence[float] = (0.5,), **_: Any) -> list[float]:
        """Autotune compares configurations: each is compiled, all are called equal, so the first that fits is used."""
        self._recorder.tuning = True
        try:
            kernel_call()
        finally:
            self._recorder.tuning = False
        return [1.0] * len(quantiles or (0.5,))


class Utils:
    """Answers of the driver's C helper, from the device's description."""

    def __init__(self, device: DeviceSpec) -> None:
        self._device = device

    def get_device_properties(self, _: int = 0) -> dict[str, int]:
        device = self._device
        return {
            "max_shared_mem": device.shared_per_block,
            "max_num_regs": device.registers_per_sm,
            "multiprocessor_count": device.n_sms,
            "warpSize": 32,
            "sm_clock_rate": int(device.sm_clock_mhz * 1000),
            "mem_clock_rate": 0,
            "mem_bus_width": 0,
        }

    def load_binary(self, *_: Any) -> tuple[int, int, int, int, int]:
        """Module, function, registers, spills, threads a block may have."""
        return 0, 0, 0, 0, 1024


def _constexprs(source: Any) -> tuple[tuple[str, str], ...]:
    names = source.fn.arg_names
    return tuple((names[path[0]], _text(value)) for path, value in source.constants.items() if isinstance(path[0], int))


def _text(value: Any) -> str:
    return str(getattr(value, "value", value))


def _kinds(source: Any) -> tuple[tuple[str, str], ...]:
    divisible = {path[0] for path, attribute in source.attrs.items() if attribute}
    kinds = [(i, name, kind) for i, (name, kind) in enumerate(source.signature.items()) if kind != "constexpr"]
    return tuple((name, f"{kind}:16" if i in divisible else str(kind)) for i, name, kind in kinds)
