"""Rules of the diagnosis about memory: bandwidth, passes, caches, access, spills, bank conflicts. Pure."""

from collections.abc import Iterator

from kbtui.domain.profile import Bottleneck, Evidence, Finding
from kbtui.evaluation.profiling.case import AT_BOUND_GAP, COPY_EFFICIENCY, DRAM_LIMIT, Case, found, saturation
from kbtui.evaluation.profiling.rules_parallel import waiting

#: From here on the excess is more than rounding to sectors, masks and what a cold cache costs.
_EXCESS = 1.2
#: Bytes of one load by one thread: the widest there is, and what is narrow.
_WIDEST, _NARROW = 16.0, 8.0


def at_bound(case: Case) -> Iterator[Finding]:
    if case.gap <= AT_BOUND_GAP and case.bound_us > 0:
        yield from found(
            Bottleneck.AT_BOUND, 1.0 - case.gap,
            Evidence("reached", 100 * (1 - case.gap), "% of the bound"),
            Evidence("dram", 100 * case.dram_use, "% of peak"),
        )  # fmt: skip


def dram(case: Case) -> Iterator[Finding]:
    """Device memory at its limit with bytes that must move; those that need not are another finding."""
    if case.dram_use < DRAM_LIMIT:
        return
    useful = case.dram_use / case.passes * (1.0 - (case.work.spill_share or 0.0))
    useful *= 0.5 if case.passes >= _EXCESS else 1.0
    rate = case.dram_use * case.device.dram_gb_s
    yield from found(
        Bottleneck.DRAM, 0.8 * useful,
        Evidence("dram", 100 * case.dram_use, "% of peak"), Evidence("bandwidth", rate, "GB/s"),
    )  # fmt: skip


def extra_passes(case: Case) -> Iterator[Finding]:
    """A problem that needs each byte once: device memory moves more, or a busy cache does."""
    if not case.streaming:
        return
    efficiency = case.sector_efficiency or 1.0
    excess = 1.0 - 1.0 / case.passes if case.passes >= _EXCESS else 0.0
    weight = min(excess, case.gap) * min(1.0, max(case.dram_use, 0.3) / COPY_EFFICIENCY) * efficiency
    if case.asked_passes >= _EXCESS:
        again = 1.0 - 1.0 / case.asked_passes
        weight = max(weight, again * _cache_limit(case) * case.gap * efficiency)
    yield from found(
        Bottleneck.EXTRA_PASSES, weight,
        Evidence("device memory traffic", case.passes, "x the bytes needed"),
        Evidence("asked for", case.asked_passes, "x the bytes needed"),
    )  # fmt: skip


def _cache_limit(case: Case) -> float:
    """Part of the time that a cache's traffic takes, as far as the cache is the limit."""
    use = case.work.cache_share or 0.0
    return use * saturation(use)


def cache(case: Case) -> Iterator[Finding]:
    """A problem that reuses its operands: they come from device memory again, or the caches are at their limit."""
    if case.streaming:
        return
    use = case.work.cache_share or 0.0
    refetched = (1.0 - 1.0 / case.passes) * case.dram_use if case.passes >= 1.5 else 0.0
    reread = 0.8 * _cache_limit(case) if case.asked_passes >= 4.0 else 0.0
    # Operands that pass through the CUDA cores' registers are read more often than a tensor core reads them.
    weight = max(refetched, reread) * case.gap * (0.5 if case.wants_tensor_cores else 1.0)
    yield from found(
        Bottleneck.CACHE, weight,
        Evidence("caches", 100 * use, "% of peak"),
        Evidence("asked for", case.asked_passes, "x the bytes needed"),
        Evidence("device memory traffic", case.passes, "x the bytes needed"),
    )  # fmt: skip


def uncoalesced(case: Case) -> Iterator[Finding]:
    efficiency = case.sector_efficiency
    if efficiency is not None and efficiency < 0.8:
        yield from found(
            Bottleneck.UNCOALESCED, (1.0 - efficiency) * case.gap * (1.0 - case.launching),
            Evidence("using", 100 * efficiency, "% of the bytes moved"),
        )  # fmt: skip


def narrow(case: Case) -> Iterator[Finding]:
    """Threads that load a few bytes at a time keep too few in flight: the cause of the waiting, where there is some."""
    width, efficiency = case.work.load_bytes, case.sector_efficiency
    if not case.streaming or width is None or width > _NARROW or (efficiency or 1.0) < 0.8:
        return
    yield from found(
        Bottleneck.NARROW, waiting(case) * (1.0 + (1.0 - width / _WIDEST) / 2),
        Evidence("loading", width, f"of {_WIDEST:.0f} bytes a thread at once"),
        Evidence("dram", 100 * case.dram_use, "% of peak"),
    )  # fmt: skip


def spills(case: Case) -> Iterator[Finding]:
    """By traffic where it was counted; else guessed from the bytes a thread spills."""
    share = case.work.spill_share
    if share is None:
        share = case.work.spill_bytes / (case.work.spill_bytes + 64.0)
    evidence = Evidence("spilled", case.work.spill_bytes, "bytes a thread")
    yield from found(
        Bottleneck.SPILLS, share * case.gap * (1.0 - case.launching), evidence,
        Evidence("taking", 100 * share, "% of the traffic"),
    )  # fmt: skip


def bank_conflicts(case: Case) -> Iterator[Finding]:
    share = case.work.conflict_share
    if share is None or share < 0.1:
        return
    stalled = case.work.stall("short_scoreboard") + case.work.stall("mio_throttle")
    weight = min(1.0, share) * case.gap * min(1.0, 2 * stalled)
    # Operands of a product on the CUDA cores come through shared memory: not the layout, the product is to blame.
    weight *= 0.5 if case.wants_tensor_cores else 1.0
    yield from found(
        Bottleneck.BANK_CONFLICTS, weight,
        Evidence("lost to conflicts", 100 * share, "% of cycles"),
        Evidence("waiting for shared memory", 100 * stalled, "% of stalls"),
    )  # fmt: skip
