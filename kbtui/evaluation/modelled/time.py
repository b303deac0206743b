"""The time model: from a trace, the compiled resources and the data sheet to microseconds. Pure and deterministic.

For the n programs that run at once, four times are estimated:

    dram     bytes / min(0.90 x data-sheet bandwidth, SMs at work x SM link)
    caches   max(L2 bytes / min(L2 rate, SMs at work x SM link), L1 sectors / (4 a clock, 1 where scattered))
    compute  max(dots / unit rate, element operations / CUDA-core rate, special functions / 16 a clock) on one SM
    latency  start + phases x memory latency / pipelining + reductions + dependent dots      (one program's chain)

They overlap, but not perfectly: time = (dram^p + caches^p + compute^p + latency^p)^(1/p), p = 1.5 + log2(c), at most
4, where c is resident programs x pipelining: one program that loads, then computes, then stores overlaps little of it.
A launch is as many full waves of such times as its programs fill, and the tail with the SMs that still have work: too
few programs, or one program for everything, pay for idle SMs there. By Little's law the latency term is the time that
the bytes in flight allow: resident programs x bytes a phase x pipelining / latency is the rate a SM can draw.

The first launch of a call costs the device's empty kernel, further ones half of that. Spilled registers go through
L1 and L2 as often as the innermost loop runs. Nothing is faster than the problem's own bound (``DeviceSpec.bound_us``).

Sources: NVIDIA A100 and H100 whitepapers (L2: 64 B a clock and SM; 4 schedulers, 16 special functions a clock and
SM); CUDA C++ Programming Guide (arithmetic throughput); latencies of the order that microbenchmarks of those chips
report (DRAM about 0.6 us loaded, L2 about 0.2 us). DRAM reaches 0.89 of the data sheet in the copy measured on an
H200 (4.25 of 4.8 TB/s). Numbers out of this are modelled, and must be labelled so.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kbtui.domain.device import DeviceSpec
from kbtui.domain.profile import KernelResources
from kbtui.evaluation.modelled.rates import compute_us, dot_chain_us
from kbtui.evaluation.modelled.trace import SECTOR_BYTES, CallTrace, LaunchTrace
from kbtui.evaluation.modelled.traffic import Traffic, traffic_of

DRAM_EFFICIENCY = 0.90
_L2_EFFICIENCY = 0.45
_LINK_EFFICIENCY = 0.8
_LINK_BYTES_PER_CLOCK = 64
_DRAM_LATENCY_US = 0.6
_L2_LATENCY_US = 0.2
_START_US = 0.4
_REDUCTION_CLOCKS = 120.0
_REDUCTION_CLOCKS_PER_WARP = 10.0
_ASSUMED_OCCUPANCY = 0.5
_LATER_LAUNCH = 0.5


@dataclass(frozen=True, slots=True)
class LaunchTime:
    """What the model says of one launch; times in microseconds, of all its programs together.

    ``trips``: how often its innermost loop runs in one program, 1 without loops.
    """

    kernel: str
    time_us: float
    dram_us: float
    cache_us: float
    compute_us: float
    latency_us: float
    dram_bytes: float
    l2_bytes: float
    asked_bytes: float
    moved_bytes: float
    programs: int
    waves: float
    resident: int
    count: float
    spill_bytes: float = 0.0
    trips: float = 1.0


@dataclass(frozen=True, slots=True)
class ModelledTime:
    """One call: ``time_us`` includes the launches (``launch_us``) and PyTorch operations beside them (``torch_us``)."""

    shape: str
    time_us: float
    launch_us: float
    torch_us: float
    launches: tuple[LaunchTime, ...]
    bound_us: float
    n_launches: float


def model_time(
    trace: CallTrace, resources: Mapping[str, KernelResources], spec: DeviceSpec, bound_us: float
) -> ModelledTime:
    """Time of one call. ``resources`` are by kernel name; ``bound_us`` is the problem's on this device and shape."""
    launches, warm = [], frozenset[int]()
    for launch in trace.launches:
        launches.append(launch_time(launch, resources.get(launch.kernel), spec, warm))
        warm = _left_in_l2(launch, spec)
    torch_us = sum(op.bytes_moved / (spec.dram_gb_s * 1e3 * DRAM_EFFICIENCY) for op in trace.torch_ops)
    n_launches = sum(t.count for t in launches) + len(trace.torch_ops)
    launch_us = spec.launch_us * (1 + _LATER_LAUNCH * max(0.0, n_launches - 1)) if n_launches else 0.0
    total = launch_us + torch_us + sum(t.time_us * t.count for t in launches)
    return ModelledTime(trace.shape, max(total, bound_us), launch_us, torch_us, tuple(launches), bound_us, n_launches)


def launch_time(
    launch: LaunchTrace, resources: KernelResources | None, spec: DeviceSpec, warm: Iterable[int] = ()
) -> LaunchTime:
    """Time of one launch without the cost of launching it."""
    resident = _resident(launch, resources, spec)
    l1_bytes = spec.shared_per_sm - resident * (resources.shared_bytes if resources else 0)
    spilled = _spilled_bytes(launch, resources)
    traffic = traffic_of(launch, spec, resident, l1_bytes, frozenset(warm))
    traffic = Traffic(traffic.l1_bytes + spilled, traffic.l2_bytes + spilled / 2, traffic.dram_bytes)
    wave = resident * spec.n_sms
    full, rest = divmod(launch.programs, wave)
    parts = _parts(launch, resources, spec, traffic, wave) if full else (0.0,) * 4
    tail = _parts(launch, resources, spec, traffic, rest) if rest else (0.0,) * 4
    at_once = min(resident, math.ceil(launch.programs / spec.n_sms)) * launch.overlap
    serial = _contended_atomics_us(launch, spec)
    dram, cache, compute, latency = (full * a + b for a, b in zip(parts, tail, strict=True))
    return LaunchTime(
        launch.kernel,
        max(full * _overlapped(parts, at_once) + _overlapped(tail, at_once), serial),
        dram,
        cache,
        compute,
        max(latency, serial),
        traffic.dram_bytes,
        traffic.l2_bytes,
        launch.asked_bytes() / launch.count,
        launch.moved_bytes() / launch.count,
        launch.programs,
        launch.programs / wave,
        resident,
        launch.count,
        spilled,
        launch.local_trips,
    )


def _resident(launch: LaunchTrace, resources: KernelResources | None, spec: DeviceSpec) -> int:
    occupancy = resources.occupancy if resources and resources.occupancy > 0 else _ASSUMED_OCCUPANCY
    blocks = round(occupancy * spec.max_warps_per_sm / launch.num_warps)
    return max(1, min(blocks, spec.max_blocks_per_sm))


def _spilled_bytes(launch: LaunchTrace, resources: KernelResources | None) -> float:
    if resources is None or resources.spill_bytes <= 0:
        return 0.0
    return resources.spill_bytes * launch.num_warps * 32 * launch.programs * launch.local_trips


def _parts(
    launch: LaunchTrace, resources: KernelResources | None, spec: DeviceSpec, traffic: Traffic, n_programs: int
) -> tuple[float, float, float, float]:
    """(dram, caches, compute, latency) of ``n_programs`` that run at once, in microseconds."""
    active = min(n_programs, spec.n_sms)
    share = n_programs / launch.programs
    link = active * _LINK_BYTES_PER_CLOCK * spec.sm_clock_mhz * _LINK_EFFICIENCY
    dram = traffic.dram_bytes * share / min(spec.dram_gb_s * 1e3 * DRAM_EFFICIENCY, link)
    l2_rate = spec.n_sms * _LINK_BYTES_PER_CLOCK * spec.sm_clock_mhz * _L2_EFFICIENCY
    l2 = traffic.l2_bytes * share / min(l2_rate, link)
    l1 = traffic.l1_bytes * share / SECTOR_BYTES / (active * _sectors_per_clock(launch) * spec.sm_clock_mhz)
    per_sm = math.ceil(n_programs / active)
    latency = _chain_us(launch, spec, traffic.miss_rate)
    return dram, max(l2, l1), compute_us(launch, resources, spec, per_sm), latency


def _sectors_per_clock(launch: LaunchTrace) -> float:
    return 4.0 if launch.moved_bytes() <= 1.5 * launch.asked_bytes() else 1.0


def _chain_us(launch: LaunchTrace, spec: DeviceSpec, miss_rate: float) -> float:
    """What one program must wait for, one after the other."""
    memory = _L2_LATENCY_US + miss_rate * (_DRAM_LATENCY_US - _L2_LATENCY_US)
    waits = max(launch.phases, 1.0) / launch.overlap
    reduction = (_REDUCTION_CLOCKS + _REDUCTION_CLOCKS_PER_WARP * launch.num_warps) / spec.sm_clock_mhz
    return _START_US + waits * memory + launch.reductions * reduction + dot_chain_us(launch, spec)


def _overlapped(parts: tuple[float, ...], at_once: float) -> float:
    longest = max(parts)
    power = min(4.0, 1.5 + math.log2(max(1.0, at_once)))
    return longest * math.fsum((p / longest) ** power for p in parts) ** (1.0 / power) if longest > 0 else 0.0


def _contended_atomics_us(launch: LaunchTrace, spec: DeviceSpec) -> float:
    """Atomics on one address are done one after the other, about one a clock."""
    waits = [
        t.atomics * launch.programs / max(t.size_bytes / 4, 1.0)
        for t in launch.tensors
        if t.atomics and t.neighbour_share > 0.5
    ]
    return max(waits, default=0.0) / spec.sm_clock_mhz


def _left_in_l2(launch: LaunchTrace, spec: DeviceSpec) -> frozenset[int]:
    """Tensors a launch wrote that are small enough to be read from L2 by the next."""
    written = (t for t in launch.tensors if t.store_bytes and t.size_bytes <= spec.l2_bytes / 4)
    return frozenset(t.tensor for t in written)
