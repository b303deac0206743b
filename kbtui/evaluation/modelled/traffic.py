"""How much of a launch's traffic each level of memory carries. Pure.

Loads are counted in 32-byte sectors, program by program. Of those,

- what the program's last load of the tensor touched too is served by L1;
- what it touched longer ago is served by L1 if all it touched fits there, by L2 if what all resident programs
  touched fits there, and by DRAM in part between the two;
- what other programs touch too (more sectors are asked for than the tensor has) comes from DRAM once if the shared
  tensors fit in L2; else once for each wave, a wave's programs sharing what a square block of tiles would share.

The L2 that data can occupy is taken as half its size: A100 and H100 keep two partitions, each caching what its own
side of the chip reads (NVIDIA A100 whitepaper, 2020, "L2 cache").
"""

import math
from collections.abc import Collection
from dataclasses import dataclass

from kbtui.domain.device import DeviceSpec
from kbtui.evaluation.modelled.trace import SECTOR_BYTES, LaunchTrace, TensorTraffic

_USABLE_L2 = 0.5


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes of all programs of one launch through each level."""

    l1_bytes: float
    l2_bytes: float
    dram_bytes: float

    @property
    def miss_rate(self) -> float:
        """Part of what leaves the SMs that DRAM serves, 0 to 1."""
        return min(1.0, self.dram_bytes / self.l2_bytes) if self.l2_bytes else 0.0


def traffic_of(launch: LaunchTrace, spec: DeviceSpec, resident: int, l1_bytes: float, warm: Collection[int]) -> Traffic:
    """``resident``: programs on one SM at once; ``warm``: tensors an earlier launch left in L2."""
    usable = spec.l2_bytes * _USABLE_L2
    at_once = min(launch.programs, resident * spec.n_sms)
    footprint = sum((t.unique_load_sectors + t.unique_store_sectors) * SECTOR_BYTES for t in launch.tensors)
    in_l1 = resident * footprint <= l1_bytes
    far_hits = 1.0 if in_l1 else _fit(at_once * footprint, usable)
    shared_fits = sum(_once(launch, t) for t in launch.tensors if _reuse(launch, t) > 1.05) <= usable
    l2 = dram = 0.0
    for tensor in launch.tensors:
        far = _far(tensor) * SECTOR_BYTES * launch.programs
        first = (tensor.unique_load_sectors + tensor.unique_store_sectors) * SECTOR_BYTES * launch.programs
        l2 += first + (0.0 if in_l1 else far)
        cold = 0.0 if tensor.tensor in warm else _across_programs(launch, tensor, at_once, shared_fits)
        dram += cold + far * (1.0 - far_hits)
    return Traffic(launch.moved_bytes() / launch.count, l2, dram)


def _far(tensor: TensorTraffic) -> float:
    again = tensor.load_sectors - tensor.unique_load_sectors - tensor.near_load_sectors
    return max(0.0, again)


def _asked(launch: LaunchTrace, tensor: TensorTraffic) -> float:
    return (tensor.unique_load_sectors + tensor.unique_store_sectors) * SECTOR_BYTES * launch.programs


def _once(launch: LaunchTrace, tensor: TensorTraffic) -> float:
    """Bytes of the tensor that are touched at all."""
    whole = math.ceil(tensor.size_bytes / SECTOR_BYTES) * SECTOR_BYTES
    return min(_asked(launch, tensor), whole) if tensor.size_bytes else _asked(launch, tensor)


def _reuse(launch: LaunchTrace, tensor: TensorTraffic) -> float:
    once = _once(launch, tensor)
    return _asked(launch, tensor) / once if once else 1.0


def _across_programs(launch: LaunchTrace, tensor: TensorTraffic, at_once: int, shared_fits: bool) -> float:
    asked, once, reuse = _asked(launch, tensor), _once(launch, tensor), _reuse(launch, tensor)
    if reuse <= 1.05 or shared_fits:
        return once
    waves = launch.programs / at_once
    of_a_wave = min(once, asked / waves / min(reuse, max(1.0, math.sqrt(at_once))))
    return min(asked, max(once, waves * of_a_wave))


def _fit(n_bytes: float, capacity: float) -> float:
    """Hit rate of a footprint: all while half the capacity holds it, none above one and a half of it."""
    return min(1.0, max(0.0, 1.5 - n_bytes / capacity))
