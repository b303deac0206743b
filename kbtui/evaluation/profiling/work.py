"""What one call does and how busy it keeps the chip, as far as it is known: from counters, arithmetic or the model.

Pure. The diagnosis reads nothing else, so that one set of rules serves all sources; None is not known.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kbtui.domain.device import DeviceSpec
from kbtui.domain.profile import KernelResources, Profile
from kbtui.evaluation.modelled.time import ModelledTime
from kbtui.evaluation.profiling import issue, metrics

SECTOR_BYTES = 32
_LANES = 32
_CACHE_DOUBT = 0.7


@dataclass(frozen=True, slots=True)
class Work:
    """One call on one shape. Shares are parts of the time, 0 to 1.

    Attributes:
        source: ``counters``, ``compiled`` or ``model``.
        n_launches: kernel launches and PyTorch operations.
        launch_us: what launching them costs on this device.
        kernels_us: time inside kernels, where it was counted.
        programs, waves: of the launch that takes longest; waves are programs over those that fit at once.
        active_share: part of the kernel's cycles in which an SM had work, mean over SMs.
        dram_bytes: bytes through device memory, whatever for.
        asked_bytes: bytes the threads asked for; moved_bytes: in sectors, before any cache.
        load_bytes: bytes a thread moves in one global load.
        occupancy, achieved_occupancy: resident warps over the maximum, 0 to 1.
        limiter: what caps the occupancy.
        spill_bytes: bytes a thread spills; spill_share: part of the memory traffic that is spilled registers.
        tensor_cores: whether tensor-core instructions run.
        compute_share: the busiest arithmetic pipe; issue_share: the slots in which a scheduler issued anything.
        sm_share: the busiest unit of an SM, load and store units too; dram_share: device memory.
        cache_share: the busier of L2 and of L1, what L1 does as shared memory left out.
        shared_share: part of the cycles in which an SM's shared memory serves threads.
        special_share, integer_share: the special-function units; all arithmetic times its integer part.
        conflict_share: part of the shared-memory cycles lost to bank conflicts.
        stalls: (reason, per cent of the cycles between two instructions).
    """

    source: str
    n_launches: float
    launch_us: float
    kernels_us: float | None = None
    programs: float | None = None
    waves: float | None = None
    active_share: float | None = None
    dram_bytes: float | None = None
    asked_bytes: float | None = None
    moved_bytes: float | None = None
    load_bytes: float | None = None
    occupancy: float | None = None
    achieved_occupancy: float | None = None
    limiter: str | None = None
    spill_bytes: float = 0.0
    spill_share: float | None = None
    tensor_cores: bool | None = None
    compute_share: float | None = None
    issue_share: float | None = None
    sm_share: float | None = None
    cache_share: float | None = None
    shared_share: float | None = None
    dram_share: float | None = None
    latency_share: float | None = None
    barrier_share: float | None = None
    special_share: float | None = None
    integer_share: float | None = None
    conflict_share: float | None = None
    stalls: tuple[tuple[str, float], ...] = ()

    def stall(self, reason: str) -> float:
        """Part of the cycles between two instructions, 0 to 1."""
        return next((pct / 100.0 for name, pct in self.stalls if name == reason), 0.0)

    @property
    def sector_efficiency(self) -> float | None:
        """Bytes asked for over bytes moved, 0 to 1."""
        if not self.asked_bytes or not self.moved_bytes:
            return None
        return min(1.0, self.asked_bytes / self.moved_bytes)


def work_compiled(
    resources: Sequence[KernelResources], device: DeviceSpec, n_launches: float | None, source: str = "compiled"
) -> Work:
    """Without counters: grids, occupancy, spills, load width and tensor-core use as compiled."""
    launches = float(n_launches if n_launches is not None else max(1, len(resources)))
    launch_us = device.launch_us * launches
    if not resources:
        return Work(source, launches, launch_us)
    heaviest = max(resources, key=lambda r: math.prod(r.grid) * r.num_warps)
    programs = float(math.prod(heaviest.grid))
    at_once = device.n_sms * max(1.0, heaviest.occupancy * device.max_warps_per_sm / heaviest.num_warps)
    return Work(
        source,
        launches,
        launch_us,
        programs=programs,
        waves=programs / at_once,
        occupancy=heaviest.occupancy,
        limiter=heaviest.limiter,
        load_bytes=float(heaviest.load_bytes_max) or None,
        spill_bytes=float(max(r.spill_bytes for r in resources)),
        tensor_cores=any(r.mma for r in resources),
    )


def work_traced(
    modelled: ModelledTime,
    resources: Sequence[KernelResources],
    device: DeviceSpec,
    time_us: float,
    n_launches: float | None,
    source: str,
) -> Work:
    """Compiled resources, and the bytes that a trace of its memory accesses says it moves, over the time it takes.

    ``time_us`` is measured on a GPU without counters, and the model's own on a modelled device.
    """
    base = work_compiled(resources, device, n_launches or modelled.n_launches, source)
    launches = modelled.launches
    if not launches:
        return base
    longest = max(launches, key=lambda t: t.time_us * t.count)
    moved = sum(t.moved_bytes * t.count for t in launches)
    spilled = sum(t.spill_bytes * t.count for t in launches)
    busy = issue.shares(modelled, resources, device, time_us)
    # The model takes caches to be slower than they are at their best.
    cache_doubt = 1.0 if source == "model" else _CACHE_DOUBT
    # Its arithmetic is too rough to be set against a measured time.
    modelled_compute = _share(sum(t.compute_us * t.count for t in launches), time_us) if source == "model" else 0.0
    return replace(
        base,
        n_launches=base.n_launches if n_launches else modelled.n_launches,
        launch_us=modelled.launch_us if source == "model" else base.launch_us,
        programs=float(longest.programs),
        waves=longest.waves,
        dram_bytes=sum(t.dram_bytes * t.count for t in launches),
        asked_bytes=sum(t.asked_bytes * t.count for t in launches),
        moved_bytes=moved,
        spill_share=spilled / (spilled + moved) if spilled else 0.0,
        compute_share=max(modelled_compute, busy.special, busy.integer),
        cache_share=_share(sum(t.cache_us * t.count for t in launches), time_us) * cache_doubt,
        dram_share=_share(sum(t.dram_us * t.count for t in launches), time_us),
        latency_share=_share(sum(t.latency_us * t.count for t in launches), time_us) if source == "model" else None,
        barrier_share=busy.barrier,
        special_share=busy.special,
        integer_share=busy.integer,
    )


def work_measured(
    profile: Profile, resources: Sequence[KernelResources], device: DeviceSpec, n_launches: float | None
) -> Work:
    """From counters; what they lack comes from the compiled kernel."""
    base = work_compiled(resources, device, n_launches or len(profile.kernels) or None, "counters")
    m = profile.metric
    spilled = _sum(m(metrics.LOCAL_LOAD_SECTORS), m(metrics.LOCAL_STORE_SECTORS)) or 0.0
    moved = _sum(m(metrics.GLOBAL_LOAD_SECTORS), m(metrics.GLOBAL_STORE_SECTORS))
    efficiency = _efficiency(profile, resources)
    conflicts, wavefronts = m(metrics.BANK_CONFLICTS), m(metrics.SHARED_WAVEFRONTS)
    duration_ns = m(metrics.DURATION)
    active = _ratio(m(metrics.SM_CYCLES_ACTIVE), m(metrics.SM_CYCLES_ELAPSED))
    return replace(
        base,
        kernels_us=duration_ns / 1e3 if duration_ns and len(profile.kernels) < metrics.MAX_LAUNCHES else None,
        programs=_or(m(metrics.GRID), base.programs),
        waves=_or(m(metrics.WAVES), base.waves),
        active_share=active,
        dram_bytes=_sum(m(metrics.DRAM_READ), m(metrics.DRAM_WRITE)),
        asked_bytes=moved * SECTOR_BYTES * efficiency if moved and efficiency else None,
        moved_bytes=moved * SECTOR_BYTES if moved else None,
        load_bytes=_load_bytes(profile, base, resources),
        occupancy=_or(_fraction(m(metrics.THEORETICAL_OCCUPANCY)), base.occupancy),
        achieved_occupancy=_fraction(m(metrics.ACHIEVED_OCCUPANCY)),
        limiter=_limiter(profile) or base.limiter,
        spill_share=spilled / (spilled + moved) if moved else None,
        tensor_cores=_tensor_cores(profile, base),
        compute_share=_or(_of_all(_most(*map(m, metrics.ARITHMETIC_PIPES)), active), _fraction(m(metrics.SM_PCT))),
        issue_share=_of_all(m(metrics.ISSUE_ACTIVE), active),
        sm_share=_fraction(m(metrics.SM_PCT)),
        cache_share=_most(_fraction(m(metrics.L2_PCT)), _l1_share(profile, device)),
        shared_share=_per_cycle(wavefronts, profile, device),
        dram_share=_fraction(m(metrics.DRAM_PCT)),
        special_share=_of_all(m(metrics.XU_PCT), active),
        integer_share=_integer_share(profile, active),
        conflict_share=conflicts / wavefronts if conflicts is not None and wavefronts else None,
        stalls=profile.stalls,
    )


def _tensor_cores(profile: Profile, base: Work) -> bool | None:
    """By cycles: on Hopper some instructions that are no products are counted in the pipe, a few per mille."""
    busy = profile.metric(metrics.TENSOR_PCT)
    return base.tensor_cores if busy is None else busy >= 1.0 or bool(base.tensor_cores)


def _of_all(pct: float | None, active: float | None) -> float | None:
    """Part of the time of what is counted in per cent of the cycles in which an SM has work."""
    share = _fraction(pct)
    return share if share is None or active is None else share * active


def _integer_share(profile: Profile, active: float | None) -> float | None:
    """Use of the busiest arithmetic pipe or of the issue slots, times the integer part of the arithmetic."""
    integer = profile.metric(metrics.INTEGER_INSTRUCTIONS)
    floating = _sum(profile.metric(metrics.FP32_INSTRUCTIONS), profile.metric(metrics.FP16_INSTRUCTIONS))
    pcts = map(profile.metric, (metrics.ALU_PCT, metrics.FMA_PCT, metrics.ISSUE_ACTIVE))
    busy = _of_all(_most(*pcts), active)
    if integer is None or floating is None or busy is None or integer + floating <= 0:
        return None
    return busy * integer / (integer + floating)


def _l1_share(profile: Profile, device: DeviceSpec) -> float | None:
    """Part of the cycles in which an SM's L1 serves global memory: four sectors of one request a cycle at most.

    ncu's own figure for L1 counts shared memory too, which is the same store: a product whose operands come from
    there is not a cache at its limit.
    """
    loads = _wavefronts(profile.metric(metrics.GLOBAL_LOAD_SECTORS), profile.metric(metrics.SECTORS_PER_LOAD))
    stores = _wavefronts(profile.metric(metrics.GLOBAL_STORE_SECTORS), profile.metric(metrics.SECTORS_PER_STORE))
    return _per_cycle(_sum(loads, stores), profile, device)


def _wavefronts(sectors: float | None, per_request: float | None) -> float | None:
    return sectors / min(4.0, per_request) if sectors and per_request else None


def _per_cycle(count: float | None, profile: Profile, device: DeviceSpec) -> float | None:
    """What an SM does at most once a cycle, over the cycles of the kernels."""
    duration_ns = profile.metric(metrics.DURATION)
    if count is None or not duration_ns or device.sm_clock_mhz <= 0:
        return None
    return min(1.0, count / (device.n_sms * duration_ns * device.sm_clock_mhz / 1e3))


def _load_bytes(profile: Profile, base: Work, resources: Sequence[KernelResources]) -> float | None:
    """Bytes of one load by one thread, if all lanes take part: a warp's request moves 32 times that."""
    sectors, efficiency = profile.metric(metrics.SECTORS_PER_LOAD), _load_efficiency(profile, resources)
    if sectors is None:
        return base.load_bytes
    return sectors * SECTOR_BYTES * (1.0 if efficiency is None else efficiency) / _LANES


def _load_efficiency(profile: Profile, resources: Sequence[KernelResources]) -> float | None:
    """Bytes that loads use of the bytes in the sectors they move.

    The counter leaves out bytes that asynchronous copies bring (0, 4 and 50 % were seen on an H200 where every sector
    was used whole). A request of 32 lanes needs as many sectors as a lane takes bytes: where there are such copies,
    what it takes instead tells.
    """
    counted, sectors = _fraction(profile.metric(metrics.LOAD_EFFICIENCY)), profile.metric(metrics.SECTORS_PER_LOAD)
    widest = max((r.load_bytes_max for r in resources), default=0)
    if not sectors or not widest or not any(r.count("async_copy") for r in resources):
        return counted
    return max(counted or 0.0, min(1.0, widest / sectors))


def _efficiency(profile: Profile, resources: Sequence[KernelResources]) -> float | None:
    """Bytes used of the bytes in the sectors moved, loads and stores weighted by their sectors."""
    pairs = [
        (_load_efficiency(profile, resources), profile.metric(metrics.GLOBAL_LOAD_SECTORS)),
        (_fraction(profile.metric(metrics.STORE_EFFICIENCY)), profile.metric(metrics.GLOBAL_STORE_SECTORS)),
    ]
    known = [(e, s) for e, s in pairs if e and s]
    total = sum(s for _, s in known)
    return min(1.0, sum(e * s for e, s in known) / total) if total else None


def _limiter(profile: Profile) -> str | None:
    """The smallest of the four block limits; ncu gives each in blocks on one SM."""
    limits = {
        "registers": profile.metric(metrics.LIMIT_REGISTERS),
        "shared memory": profile.metric(metrics.LIMIT_SHARED),
        "warps": profile.metric(metrics.LIMIT_WARPS),
        "blocks": profile.metric(metrics.LIMIT_BLOCKS),
    }
    known = {name: value for name, value in limits.items() if value}
    return min(known, key=lambda name: known[name]) if known else None


def _sum(*values: float | None) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) if known else None


def _most(*values: float | None) -> float | None:
    return max((v for v in values if v is not None), default=None)


def _ratio(part: float | None, whole: float | None) -> float | None:
    return min(1.0, part / whole) if part is not None and whole else None


def _fraction(pct: float | None) -> float | None:
    return None if pct is None else min(1.0, max(0.0, pct / 100.0))


def _or(value: float | None, other: float | None) -> float | None:
    return other if value is None else value


def _share(part_us: float, time_us: float) -> float:
    return min(1.0, part_us / time_us) if time_us > 0 else 0.0
