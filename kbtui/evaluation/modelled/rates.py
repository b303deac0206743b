"""What an SM computes: element operations, special functions and dots. Pure.

A dot's rate is the tensor core's where the compiled kernel has tensor-core instructions, else the CUDA cores'. Small
tiles cannot reach it: each of the program's warps reads (m + n) x k operands from shared memory at 128 bytes a clock
and SM for 2 m n k operations of its own tile (CUDA C++ Programming Guide, shared memory).
"""

import math

from kbtui.domain.device import DeviceSpec
from kbtui.domain.profile import KernelResources
from kbtui.evaluation.modelled.trace import DotTrace, LaunchTrace

_ALU_EFFICIENCY = 0.7
_DOT_EFFICIENCY = 0.8
_SFU_LANES = 16
_SCHEDULERS = 4
_SHARED_BYTES_PER_CLOCK = 128
_DOT_LATENCY_CLOCKS = 60.0
_FP32_PASSES = {"tf32": 1.0, "tf32x3": 3.0}
_ITEM_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "fp64": 8}


def compute_us(launch: LaunchTrace, resources: KernelResources | None, spec: DeviceSpec, per_sm: int) -> float:
    """Time one SM needs for the arithmetic of the ``per_sm`` programs on it, in microseconds."""
    lanes = spec.fp32_tflops * 1e6 / (2 * spec.n_sms * spec.sm_clock_mhz)
    alu = launch.alu_ops / (lanes * _ALU_EFFICIENCY * _issue(launch.num_warps * per_sm))
    sfu = launch.sfu_ops / _SFU_LANES
    dots = sum(dot_clocks(dot, launch.num_warps, resources, spec) for dot in launch.dots)
    return (max(alu, sfu) + dots) * per_sm / spec.sm_clock_mhz


def _issue(n_warps: int) -> float:
    """Part of its slots a scheduler can fill: with fewer than four warps each, dependent instructions leave gaps."""
    return min(1.0, math.sqrt(n_warps / (_SCHEDULERS * 4)))


def dot_clocks(dot: DotTrace, num_warps: int, resources: KernelResources | None, spec: DeviceSpec) -> float:
    """Clocks of one SM for all of a program's dots of one shape."""
    emitted = resources is None or resources.mma
    tensor_cores = emitted and (_half(dot) or dot.precision != "ieee")
    dtype = "float16" if _half(dot) else "float32"
    peak = spec.peak_tflops(dtype, tensor_cores) * 1e6 / (spec.n_sms * spec.sm_clock_mhz)
    passes = _FP32_PASSES.get(dot.precision, 1.0) if dtype == "float32" and tensor_cores else 1.0
    maths = passes * dot.flops / (peak * _DOT_EFFICIENCY)
    return max(maths, _shared_clocks(dot, num_warps))


def dot_chain_us(launch: LaunchTrace, spec: DeviceSpec) -> float:
    """Dots of one program wait for one another: a fixed latency each, and the steps along k."""
    return sum(d.count * (_DOT_LATENCY_CLOCKS + d.k) for d in launch.dots) / spec.sm_clock_mhz


def _half(dot: DotTrace) -> bool:
    return dot.dtype in ("fp16", "bf16") or dot.dtype.startswith("fp8")


def _shared_clocks(dot: DotTrace, num_warps: int) -> float:
    rows = 1 << (int(math.log2(num_warps) + 1) // 2)
    tile_m, tile_n = max(16.0, dot.m / rows), max(8.0, dot.n / max(1, num_warps // rows))
    tiles = max(1.0, dot.m / tile_m) * max(1.0, dot.n / tile_n)
    operands = (tile_m + tile_n) * dot.k * _ITEM_BYTES.get(dot.dtype, 1)
    return dot.count * tiles * operands / _SHARED_BYTES_PER_CLOCK
