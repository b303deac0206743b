"""Rules of the diagnosis about parallelism: programs, waves, occupancy, waiting, barriers, launches. Pure."""

import math
from collections.abc import Iterator

from kbtui.domain.profile import Bottleneck, Evidence, Finding
from kbtui.evaluation.profiling.case import Case, found

#: More waves than these even out.
_EVEN_WAVES = 6.0
_LOW_OCCUPANCY = 0.4
_HIDDEN_BY_STAGES = 0.7


def too_few_programs(case: Case) -> Iterator[Finding]:
    """SMs that never get a program."""
    programs = case.work.programs
    if programs is None or programs >= case.device.n_sms:
        return
    idle = 1.0 - programs / case.device.n_sms
    yield from found(
        Bottleneck.TOO_FEW_PROGRAMS, idle * case.gap * (1.0 - case.launching),
        Evidence("programs", programs, ""), Evidence("SMs", case.device.n_sms, ""),
        Evidence("waves", case.work.waves or 0.0, ""),
    )  # fmt: skip


def tail(case: Case) -> Iterator[Finding]:
    """A last wave that few SMs take part in. By the SMs' own cycles where they were counted."""
    programs, waves = case.work.programs, case.work.waves
    if programs is None or waves is None or programs < case.device.n_sms or not 1.0 < waves < _EVEN_WAVES:
        return
    idle = 1.0 - waves / math.ceil(waves)
    if case.work.active_share is not None:
        idle = min(idle, 1.0 - case.work.active_share)
    yield from found(
        Bottleneck.TAIL, min(0.9 * idle, case.gap) * (1.0 - case.launching),
        Evidence("waves", waves, ""), Evidence("SMs idle", 100 * idle, "% of the time"),
        Evidence("programs", programs, ""),
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
    # Programs that would not fill even these places are another matter.
    enough = case.work.waves is None or case.work.waves >= 1.0
    if held is None or held >= _LOW_OCCUPANCY or limiter is None or not enough:
        return
    weight = (0.5 - held) / 0.5 * case.gap * (1.0 - case.busiest) * (1.0 - case.launching)
    # Products on tensor cores hide part of their waits by stages, not by warps.
    weight *= _HIDDEN_BY_STAGES if case.work.tensor_cores else 1.0
    for name, bottleneck in _BY_LIMITER.items():
        if limiter.startswith(name):
            yield from found(bottleneck, weight, Evidence("occupancy", 100 * held, "%"))
            return


def waiting(case: Case) -> float:
    """Part of the time in which nothing is busy, as far as waiting for memory explains it."""
    share = case.work.latency_share
    if share is None:
        counted = bool(case.work.stalls)
        share = (1.0 - case.busiest) * (0.5 + 0.5 * _memory_waits(case) if counted else 0.75)
    return 0.6 * share * case.gap * (1.0 - case.dram_use) * (1.0 - case.launching)


def _memory_waits(case: Case) -> float:
    """Part of the stalls that is for memory, 0 to 1.

    A product on tensor cores passes its operands through shared memory, behind a barrier that no one can leave out:
    a warp there waits for what the last warp waits for, so that the barrier's part goes to the others' reasons.
    """
    memory, barrier = case.work.stall("long_scoreboard"), case.work.stall("barrier")
    if not case.work.tensor_cores or barrier >= 1.0:
        return memory
    return min(1.0, memory / (1.0 - barrier))


def latency(case: Case) -> Iterator[Finding]:
    resident = case.work.achieved_occupancy if case.work.achieved_occupancy is not None else _resident(case)
    yield from found(
        Bottleneck.LATENCY, waiting(case),
        Evidence("dram", 100 * case.dram_use, "% of peak"),
        Evidence("waiting for memory", 100 * case.work.stall("long_scoreboard"), "% of stalls"),
        Evidence("warps at work", 100 * (resident or 0.0), "% of what fits"),
    )  # fmt: skip


def _resident(case: Case) -> float | None:
    """Warps that the programs there are can fill of those an SM holds, 0 to 1."""
    if case.work.occupancy is None or case.work.waves is None:
        return None
    return case.work.occupancy * min(1.0, case.work.waves)


def barrier(case: Case) -> Iterator[Finding]:
    """Warps that wait for each other, and what they exchange there: both go when the meeting goes."""
    if not case.work.stalls:
        share, unit = 0.8 * (case.work.barrier_share or 0.0), "% of the time, by the model"
    else:
        share, unit = case.work.stall("barrier"), "% of stalls"
        share -= _memory_waits(case) - case.work.stall("long_scoreboard")
    exchange = _exchange(case)
    if share >= 0.12:
        yield from found(
            Bottleneck.BARRIER, (share + exchange) * case.gap,
            Evidence("at barriers", 100 * share, unit), Evidence("exchanging", 100 * exchange, "% of stalls"),
        )  # fmt: skip


def _exchange(case: Case) -> float:
    """Part of the stalls that is for what other warps or lanes hold: not operands of a product, not bank conflicts."""
    if case.work.tensor_cores or case.wants_tensor_cores:
        return 0.0
    return case.shared_waits * (1.0 - min(1.0, case.work.conflict_share or 0.0))


def launch(case: Case) -> Iterator[Finding]:
    share = case.launching
    if share >= 0.2:
        yield from found(
            Bottleneck.LAUNCH, share * max(case.gap, 0.5),
            Evidence("launches", case.work.n_launches, ""), Evidence("launching", 100 * share, "% of the time"),
        )  # fmt: skip
