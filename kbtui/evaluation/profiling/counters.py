"""What one call does, read from hardware counters: ratios of a profile's metrics. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from kbtui.domain.device import DeviceSpec
from kbtui.domain.profile import KernelResources, Profile
from kbtui.evaluation.profiling import metrics
from kbtui.evaluation.profiling.work import Work, work_compiled

_SECTOR_BYTES = 32
_LANES = 32


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
        asked_bytes=moved * _SECTOR_BYTES * efficiency if moved and efficiency else None,
        moved_bytes=moved * _SECTOR_BYTES if moved else None,
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
    return sectors * _SECTOR_BYTES * (1.0 if efficiency is None else efficiency) / _LANES


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
