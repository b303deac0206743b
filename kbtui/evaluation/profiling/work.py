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
        compute_share: the busiest arithmetic unit; cache_share: the busier of L1 and L2; dram_share: device memory.
        special_share, integer_share: the special-function units; all arithmetic times its integer part.
        conflict_share: part of the shared-memory cycles lost to bank conflicts.
        barriers: barriers in the kernel's text, None where it is not known.
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
    cache_share: float | None = None
    dram_share: float | None = None
    latency_share: float | None = None
    barrier_share: float | None = None
    special_share: float | None = None
    integer_share: float | None = None
    conflict_share: float | None = None
    barriers: int | None = None
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
        barriers=heaviest.count("barrier") if heaviest.mix else None,
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
    efficiency = _efficiency(profile)
    conflicts, wavefronts = m(metrics.BANK_CONFLICTS), m(metrics.SHARED_WAVEFRONTS)
    duration_ns = m(metrics.DURATION)
    return replace(
        base,
        kernels_us=duration_ns / 1e3 if duration_ns and len(profile.kernels) < metrics.MAX_LAUNCHES else None,
        programs=_or(m(metrics.GRID), base.programs),
        waves=_or(m(metrics.WAVES), base.waves),
        active_share=_ratio(m(metrics.SM_CYCLES_ACTIVE), m(metrics.SM_CYCLES_ELAPSED)),
        dram_bytes=_sum(m(metrics.DRAM_READ), m(metrics.DRAM_WRITE)),
        asked_bytes=moved * SECTOR_BYTES * efficiency if moved and efficiency else None,
        moved_bytes=moved * SECTOR_BYTES if moved else None,
        load_bytes=_load_bytes(profile, base),
        occupancy=_or(_fraction(m(metrics.THEORETICAL_OCCUPANCY)), base.occupancy),
        achieved_occupancy=_fraction(m(metrics.ACHIEVED_OCCUPANCY)),
        limiter=_limiter(profile) or base.limiter,
        spill_share=spilled / (spilled + moved) if moved else None,
        tensor_cores=_tensor_cores(profile, base),
        compute_share=_fraction(m(metrics.SM_PCT)),
        cache_share=_fraction(_most(m(metrics.L1_PCT), m(metrics.L2_PCT))),
        dram_share=_fraction(m(metrics.DRAM_PCT)),
        special_share=_fraction(m(metrics.XU_PCT)),
        integer_share=_integer_share(profile),
        conflict_share=conflicts / wavefronts if conflicts is not None and wavefronts else None,
        stalls=profile.stalls,
    )


def _tensor_cores(profile: Profile, base: Work) -> bool | None:
    """By cycles: on Hopper some instructions that are no products are counted in the pipe, a few per mille."""
    busy = profile.metric(metrics.TENSOR_PCT)
    return base.tensor_cores if busy is None else busy >= 1.0 or bool(base.tensor_cores)


def _integer_share(profile: Profile) -> float | None:
    """Use of the busiest arithmetic pipe or of the issue slots, times the integer part of the arithmetic."""
    integer = profile.metric(metrics.INTEGER_INSTRUCTIONS)
    floating = _sum(profile.metric(metrics.FP32_INSTRUCTIONS), profile.metric(metrics.FP16_INSTRUCTIONS))
    busy = _most(profile.metric(metrics.ALU_PCT), profile.metric(metrics.FMA_PCT), profile.metric(metrics.ISSUE_ACTIVE))
    if integer is None or floating is None or busy is None or integer + floating <= 0:
        return None
    return min(1.0, busy / 100.0) * integer / (integer + floating)


def _load_bytes(profile: Profile, base: Work) -> float | None:
    """Bytes of one load by one thread, if all lanes take part: a warp's request moves 32 times that."""
    sectors = profile.metric(metrics.SECTORS_PER_LOAD)
    if sectors is None:
        return base.load_bytes
    efficiency = _fraction(profile.metric(metrics.LOAD_EFFICIENCY))
    return sectors * SECTOR_BYTES * (1.0 if efficiency is None else efficiency) / _LANES


def _efficiency(profile: Profile) -> float | None:
    """Bytes used of the bytes in the sectors moved, loads and stores weighted by their sectors."""
    pairs = [
        (profile.metric(metrics.LOAD_EFFICIENCY), profile.metric(metrics.GLOBAL_LOAD_SECTORS)),
        (profile.metric(metrics.STORE_EFFICIENCY), profile.metric(metrics.GLOBAL_STORE_SECTORS)),
    ]
    known = [(e / 100.0, s) for e, s in pairs if e and s]
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
