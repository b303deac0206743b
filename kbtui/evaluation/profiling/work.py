"""What one call does and how busy it keeps the chip, as far as it is known: from counters, arithmetic or the model.

Pure. The diagnosis reads nothing else, so that one set of rules serves all sources; None is not known.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kbtui.domain.device import DeviceSpec
from kbtui.domain.profile import KernelResources
from kbtui.evaluation.modelled.time import ModelledTime
from kbtui.evaluation.profiling import issue

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


def _share(part_us: float, time_us: float) -> float:
    return min(1.0, part_us / time_us) if time_us > 0 else 0.0
