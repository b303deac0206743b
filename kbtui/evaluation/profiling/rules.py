"""One rule for each bottleneck: is it there, how much of the time does it explain, on what evidence. Pure.

A rule's weight is the part of the kernel's time that curing it could save, 0 to 1, so weights of different rules can
be compared. Everything but the bound itself is scaled by the gap: the part of the time above the problem's own bound.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kbtui.domain.device import DeviceSpec
from kbtui.domain.profile import Bottleneck, Evidence, Finding
from kbtui.evaluation.profiling.work import Work

#: A kernel this close to the problem's bound has nothing left that tuning finds (copies reach 0.89 of the data sheet).
AT_BOUND_GAP = 0.15


@dataclass(frozen=True, slots=True)
class Case:
    """What the rules read. ``bytes_needed`` and ``flops`` are the problem's own; times in microseconds."""

    device: DeviceSpec
    dtype: str
    time_us: float
    bound_us: float
    bytes_needed: float
    flops: float
    work: Work

    @property
    def gap(self) -> float:
        """Part of the time above the problem's bound, 0 to 1."""
        return max(0.0, 1.0 - self.bound_us / self.time_us) if self.time_us > 0 else 0.0

    @property
    def dram_use(self) -> float:
        """Part of the data sheet's bandwidth that is used, 0 to 1; from the problem's bytes where none were counted."""
        n_bytes = self.work.dram_bytes if self.work.dram_bytes is not None else self.bytes_needed
        rate = n_bytes / (self.time_us * self.device.dram_gb_s * 1e3) if self.time_us > 0 else 0.0
        return min(1.0, rate)

    @property
    def passes(self) -> float:
        """Bytes through device memory over the fewest that must."""
        if not self.work.dram_bytes or self.bytes_needed <= 0:
            return 1.0
        return self.work.dram_bytes / self.bytes_needed

    @property
    def streaming(self) -> bool:
        """Whether the problem does too little arithmetic for a byte to need anything but bandwidth."""
        return self.bytes_needed > 0 and self.flops / self.bytes_needed < 10

    @property
    def busiest(self) -> float:
        """Use of the busier of memory and arithmetic."""
        return max(self.dram_use, self.work.compute_share or 0.0)


def findings(case: Case) -> tuple[Finding, ...]:
    """Everything the rules find, heaviest first; never empty."""
    found = sorted((f for rule in _RULES for f in rule(case)), key=lambda f: -f.weight)
    return tuple(found) or (Finding(Bottleneck.UNKNOWN, 0.0, (Evidence("above the bound", case.gap * 100, "%"),)),)


def _found(bottleneck: Bottleneck, weight: float, *evidence: Evidence) -> Iterator[Finding]:
    if weight > 0.02:
        yield Finding(bottleneck, round(min(1.0, weight), 4), evidence)


def at_bound(case: Case) -> Iterator[Finding]:
    if case.gap <= AT_BOUND_GAP and case.bound_us > 0:
        yield from _found(
            Bottleneck.AT_BOUND, 1.0 - case.gap,
            Evidence("of the bound", 100 * (1 - case.gap), "%"), Evidence("dram", 100 * case.dram_use, "% of peak"),
        )  # fmt: skip


def dram(case: Case) -> Iterator[Finding]:
    useful = case.dram_use / max(1.0, case.passes)
    # Bytes that need not move are another finding, and that one can be cured.
    useful *= 0.5 if case.passes >= 1.2 else 1.0
    if case.dram_use >= 0.4:
        rate = case.dram_use * case.device.dram_gb_s
        yield from _found(
            Bottleneck.DRAM, 0.8 * useful,
            Evidence("dram", 100 * case.dram_use, "% of peak"), Evidence("bandwidth", rate, "GB/s"),
        )  # fmt: skip


def extra_passes(case: Case) -> Iterator[Finding]:
    """Device memory read more than once, or, for streaming problems, the caches."""
    efficiency = case.work.sector_efficiency or 1.0
    excess = 1.0 - 1.0 / case.passes if case.passes >= 1.2 else 0.0
    weight = excess * max(case.dram_use, 0.3) * efficiency
    asked = case.work.asked_bytes or 0.0
    if case.streaming and asked >= 1.25 * case.bytes_needed:
        weight = max(weight, 0.55 * (1.0 - case.bytes_needed / asked) * case.gap)
    yield from _found(
        Bottleneck.EXTRA_PASSES, weight,
        Evidence("device memory traffic", case.passes, "x the bytes needed"),
        Evidence("asked for", asked / case.bytes_needed if case.bytes_needed else 0.0, "x the bytes needed"),
    )  # fmt: skip


def uncoalesced(case: Case) -> Iterator[Finding]:
    efficiency = case.work.sector_efficiency
    if efficiency is not None and efficiency < 0.8:
        yield from _found(
            Bottleneck.UNCOALESCED, (1.0 - efficiency) * case.gap,
            Evidence("bytes used of those moved", 100 * efficiency, "%"),
        )  # fmt: skip


def spills(case: Case) -> Iterator[Finding]:
    if case.work.spill_bytes <= 0:
        return
    guess = case.work.spill_bytes / (case.work.spill_bytes + 64.0)
    share = guess if case.work.spill_share is None else case.work.spill_share
    evidence = Evidence("spilled", case.work.spill_bytes, "bytes a thread")
    yield from _found(Bottleneck.SPILLS, share * case.gap, evidence, Evidence("of the traffic", 100 * share, "%"))


def too_few_programs(case: Case) -> Iterator[Finding]:
    """SMs without work: fewer programs than SMs, or a last wave that fills few of them."""
    programs, waves = case.work.programs, case.work.waves
    if programs is None:
        return
    idle = max(0.0, 1.0 - programs / case.device.n_sms)
    if idle == 0.0 and waves is not None and 1.0 < waves < 6.0:
        idle = 0.8 * (1.0 - waves / math.ceil(waves))
    launching = min(1.0, case.work.launch_us / case.time_us) if case.time_us > 0 else 0.0
    yield from _found(
        Bottleneck.TOO_FEW_PROGRAMS, idle * case.gap * (1.0 - launching),
        Evidence("programs", programs, ""), Evidence("SMs", case.device.n_sms, ""),
        Evidence("waves", waves or 0.0, ""),
    )  # fmt: skip


_BY_LIMITER = {
    "registers": Bottleneck.OCCUPANCY_REGISTERS,
    "shared memory": Bottleneck.OCCUPANCY_SHARED,
    "warps": Bottleneck.OCCUPANCY_BLOCKS,
    "blocks": Bottleneck.OCCUPANCY_BLOCKS,
}


def occupancy(case: Case) -> Iterator[Finding]:
    """Too few warps to hide latency; matters only while nothing is busy and there are programs to run."""
    held, limiter = case.work.occupancy, case.work.limiter
    enough = case.work.programs is None or case.work.programs >= case.device.n_sms
    if held is None or held >= 0.4 or limiter is None or not enough:
        return
    weight = (0.5 - held) / 0.5 * case.gap * (1.0 - case.busiest)
    for name, bottleneck in _BY_LIMITER.items():
        if limiter.startswith(name):
            yield from _found(bottleneck, weight, Evidence("occupancy", 100 * held, "%"))
            return


def latency(case: Case) -> Iterator[Finding]:
    waiting = case.work.latency_share
    if waiting is None:
        waiting = (1.0 - case.busiest) * (0.5 + 0.5 * case.work.stall("long_scoreboard"))
    launching = min(1.0, case.work.launch_us / case.time_us) if case.time_us > 0 else 0.0
    yield from _found(
        Bottleneck.LATENCY, 0.6 * waiting * case.gap * (1.0 - case.dram_use) * (1.0 - launching),
        Evidence("dram", 100 * case.dram_use, "% of peak"),
        Evidence("waiting for memory", 100 * case.work.stall("long_scoreboard"), "% of stalls"),
    )  # fmt: skip


def barrier(case: Case) -> Iterator[Finding]:
    share = case.work.stall("barrier")
    if share >= 0.12:
        yield from _found(Bottleneck.BARRIER, share * case.gap, Evidence("at barriers", 100 * share, "% of stalls"))


def bank_conflicts(case: Case) -> Iterator[Finding]:
    share = case.work.conflict_share
    if share is not None and share >= 0.1:
        waiting = case.work.stall("short_scoreboard") + case.work.stall("mio_throttle")
        weight = min(1.0, share) * case.gap * max(0.3, min(1.0, 2 * waiting))
        yield from _found(Bottleneck.BANK_CONFLICTS, weight, Evidence("lost to conflicts", 100 * share, "% of cycles"))


def no_tensor_cores(case: Case) -> Iterator[Finding]:
    """Matters where the problem's arithmetic on the CUDA cores takes a good part of the time."""
    if case.work.tensor_cores is not False or case.flops <= 0 or case.streaming:
        return
    plain_us = case.flops / (case.device.peak_tflops(case.dtype, tensor_cores=False) * 1e6)
    unit_us = case.flops / (case.device.peak_tflops(case.dtype, tensor_cores=True) * 1e6)
    # Only three-pass TF32 is as exact as fp32, at a third of the rate.
    unit_us *= 3.0 if case.dtype == "float32" else 1.0
    used = min(1.0, plain_us / case.time_us)
    if unit_us < plain_us:
        weight = used**0.25 * (1.0 - unit_us / plain_us) * case.gap
        evidence = Evidence("CUDA cores at best", plain_us, "us"), Evidence("tensor cores at best", unit_us, "us")
        yield from _found(Bottleneck.NO_TENSOR_CORES, weight, *evidence)


def compute(case: Case) -> Iterator[Finding]:
    use = case.work.compute_share
    if use is None and case.flops > 0:
        rate = case.device.peak_tflops(case.dtype, tensor_cores=bool(case.work.tensor_cores))
        use = min(1.0, case.flops / (rate * 1e6) / case.time_us) if case.time_us > 0 else 0.0
    if use is not None and use >= 0.4 and use > case.dram_use:
        yield from _found(Bottleneck.COMPUTE, 0.75 * use, Evidence("arithmetic", 100 * use, "% of peak"))


def launch(case: Case) -> Iterator[Finding]:
    share = min(1.0, case.work.launch_us / case.time_us) if case.time_us > 0 else 0.0
    if share >= 0.2:
        yield from _found(
            Bottleneck.LAUNCH, share * max(case.gap, 0.5),
            Evidence("launches", case.work.n_launches, ""), Evidence("of the time is launching", 100 * share, "%"),
        )  # fmt: skip


_RULES: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    at_bound, dram, extra_passes, uncoalesced, spills, too_few_programs, occupancy, latency, barrier, bank_conflicts,
    no_tensor_cores, compute, launch,
)  # fmt: skip
