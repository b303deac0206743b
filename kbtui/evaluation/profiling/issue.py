"""How much of its time a kernel needs to issue its arithmetic, from its PTX and a trace, without counters. Pure.

An SM has four schedulers, each issuing one warp instruction a clock; special functions go through 16 lanes an SM, so
that one occupies its unit for eight clocks of a scheduler (CUDA C++ Programming Guide, "Arithmetic Instructions").
Integer divisions are sequences of instructions, and the only integer work that is counted: addressing is in every
kernel, and the compiler folds most of it. The text of the kernel is taken to run as often as the trace says of its
innermost loop, its barriers outside loops once: an upper estimate, which is why it only ever names a bottleneck that
explains most of a time.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kbtui.domain.device import DeviceSpec
from kbtui.domain.profile import KernelResources
from kbtui.evaluation.modelled.time import LaunchTime, ModelledTime

_SCHEDULERS = 4
_SPECIAL_CLOCKS = 8.0
#: A barrier of one warp costs next to nothing; of several, about this many clocks, more with each.
_BARRIER_CLOCKS, _BARRIER_CLOCKS_PER_WARP = 20.0, 4.0
#: Instructions of SASS that one of PTX becomes.
_EXPANDED: Mapping[str, float] = {"division": 20.0, "wide_division": 90.0}


@dataclass(frozen=True, slots=True)
class Busy:
    """Parts of the time, 0 to 1, that issuing one kind of instruction takes at the least."""

    special: float = 0.0
    integer: float = 0.0
    barrier: float = 0.0


def shares(modelled: ModelledTime, resources: Sequence[KernelResources], device: DeviceSpec, time_us: float) -> Busy:
    """Of one call that takes ``time_us``; kernels whose text is not known count as nothing."""
    by_name = {r.kernel: r for r in resources if r.mix}
    known = [(launch, by_name[launch.kernel]) for launch in modelled.launches if launch.kernel in by_name]
    if not known or time_us <= 0:
        return Busy()
    special = sum(_us(launch, r, device, r.count("special") * _SPECIAL_CLOCKS) for launch, r in known)
    integer = sum(_us(launch, r, device, _integer_clocks(r)) for launch, r in known)
    barrier = sum(_barrier_us(launch, r, device) for launch, r in known)
    return Busy(*(min(1.0, us / time_us) for us in (special, integer, barrier)))


def _integer_clocks(resources: KernelResources) -> float:
    return sum(resources.count(kind) * cost for kind, cost in _EXPANDED.items())


def _us(launch: LaunchTime, resources: KernelResources, device: DeviceSpec, clocks: float) -> float:
    """``clocks`` a warp and loop trip, over all warps of the launch, spread over the schedulers that have work."""
    sms = min(device.n_sms, launch.programs)
    warps = launch.programs * resources.num_warps * launch.count
    return clocks * launch.trips * warps / (sms * _SCHEDULERS * device.sm_clock_mhz)


def _barrier_us(launch: LaunchTime, resources: KernelResources, device: DeviceSpec) -> float:
    """Programs wait one beside the other, as many as are resident."""
    if resources.num_warps <= 1:
        return 0.0
    clocks = _BARRIER_CLOCKS + _BARRIER_CLOCKS_PER_WARP * resources.num_warps
    rounds = math.ceil(launch.programs / (launch.resident * device.n_sms)) * launch.count
    in_loops = resources.count("loop_barrier")
    times = launch.trips * in_loops + (resources.count("barrier") - in_loops)
    return rounds * times * clocks / device.sm_clock_mhz
