"""How many blocks of a kernel fit on a multiprocessor. Pure.

Arithmetic of NVIDIA's occupancy calculator for compute capability 8.0 to 9.0 (CUDA C++ Programming Guide, "Compute
Capabilities"): registers are allocated to a warp in units of 256, a block needs 1 KiB of shared memory of its own.
"""

from dataclasses import dataclass

from kbtui.domain.device import DeviceSpec

_REGISTER_UNIT = 256
_WARP = 32
_SYSTEM_SHARED = 1024
_SHARED_UNIT = 128


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Resident blocks and warps on one SM; ``fraction`` of its warps, and what stops the next block."""

    blocks: int
    warps: int
    fraction: float
    limiter: str


def occupancy(device: DeviceSpec, *, registers: int, shared_bytes: int, num_warps: int) -> Occupancy:
    """``registers`` a thread, ``shared_bytes`` a block. Zero blocks where one does not fit."""
    limits = {
        "registers": _blocks_by_registers(device, registers, num_warps),
        "shared memory": _blocks_by_shared(device, shared_bytes),
        "warps": device.max_warps_per_sm // num_warps,
        "blocks": device.max_blocks_per_sm,
    }
    limiter = min(limits, key=lambda name: limits[name])
    blocks = limits[limiter]
    return Occupancy(blocks, blocks * num_warps, blocks * num_warps / device.max_warps_per_sm, limiter)


def _blocks_by_registers(device: DeviceSpec, registers: int, num_warps: int) -> int:
    per_warp = _rounded_up(max(registers, 1) * _WARP, _REGISTER_UNIT)
    return device.registers_per_sm // per_warp // num_warps


def _blocks_by_shared(device: DeviceSpec, shared_bytes: int) -> int:
    if shared_bytes > device.shared_per_block:
        return 0
    return device.shared_per_sm // (_rounded_up(shared_bytes, _SHARED_UNIT) + _SYSTEM_SHARED)


def _rounded_up(amount: int, unit: int) -> int:
    return -(-amount // unit) * unit
