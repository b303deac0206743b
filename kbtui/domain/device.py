"""The chips: what a device can do at most, read off it or from its data sheet."""

from dataclasses import dataclass, replace

from kbtui.domain.measurement import Clock


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """Limits of one device. Rates are the data sheet's dense peaks.

    Attributes:
        key: as the user names it: ``cuda:0``, ``model:a100``.
        name: as shown: ``NVIDIA H200``, ``A100-SXM4-80GB``.
        clock: whether times on it are measured or modelled.
        arch: compute capability as one number, 80 for 8.0.
        dram_gb_s: memory bandwidth, 1e9 bytes a second.
        fp32_tflops, tf32_tflops, fp16_tflops: CUDA-core fp32 and dense tensor-core rates, 1e12 a second.
        shared_per_sm, shared_per_block: shared memory in bytes (opt-in maximum for a block).
        launch_us: device time of an empty kernel, microseconds.
    """

    key: str
    name: str
    clock: Clock
    arch: int
    n_sms: int
    sm_clock_mhz: float
    dram_gb_s: float
    l2_bytes: int
    memory_bytes: int
    fp32_tflops: float
    tf32_tflops: float
    fp16_tflops: float
    shared_per_sm: int
    shared_per_block: int
    registers_per_sm: int = 65536
    max_warps_per_sm: int = 64
    max_blocks_per_sm: int = 32
    launch_us: float = 3.0
    uuid: str | None = None

    def peak_tflops(self, dtype: str, tensor_cores: bool) -> float:
        """Highest rate for operands of ``dtype``, in 1e12 operations a second."""
        if not tensor_cores:
            return self.fp32_tflops
        return self.tf32_tflops if dtype == "float32" else self.fp16_tflops

    def bound_us(self, bytes_moved: float, flops: float, dtype: str, tensor_cores: bool = True) -> float:
        """No correct kernel runs faster: max(bytes / bandwidth, flops / rate), in microseconds."""
        return max(bytes_moved / (self.dram_gb_s * 1e3), flops / (self.peak_tflops(dtype, tensor_cores) * 1e6))


_KIB = 1024
_GB = 1 << 30

#: NVIDIA data sheets: A100 80GB SXM (2021), H100 SXM (2023), H200 SXM (2024).
DATA_SHEETS: dict[str, DeviceSpec] = {
    "a100": DeviceSpec(
        "model:a100", "A100-SXM4-80GB", Clock.MODELLED, 80, 108, 1410, 2039, 40 << 20, 80 * _GB,
        19.5, 156, 312, 164 * _KIB, 163 * _KIB, launch_us=3.5,
    ),
    "h100": DeviceSpec(
        "model:h100", "H100-SXM5-80GB", Clock.MODELLED, 90, 132, 1980, 3350, 50 << 20, 80 * _GB,
        66.9, 494.7, 989.4, 228 * _KIB, 227 * _KIB,
    ),
    "h200": DeviceSpec(
        "model:h200", "H200-SXM5-141GB", Clock.MODELLED, 90, 132, 1980, 4800, 50 << 20, 141 * _GB,
        66.9, 494.7, 989.4, 228 * _KIB, 227 * _KIB,
    ),
}  # fmt: skip


def closest_data_sheet(name: str, arch: int) -> DeviceSpec:
    """The data sheet whose chip the driver's name mentions, else the one of the same architecture, else the A100's."""
    lowered = name.lower()
    for chip, spec in DATA_SHEETS.items():
        if chip in lowered:
            return spec
    return next((replace(s) for s in DATA_SHEETS.values() if s.arch == arch), DATA_SHEETS["a100"])
