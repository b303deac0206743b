"""A diagnosis in one sentence that a person would say. Pure."""

from kbtui.domain.profile import Bottleneck, Finding
from kbtui.evaluation.profiling.case import Case


def sentence(case: Case, worst: Finding) -> str:
    """What bounds the kernel, in numbers, and how far it is from the problem's bound."""
    return f"{_what(case, worst)}; {_headroom(case)}."


def _headroom(case: Case) -> str:
    if case.bound_us <= 0 or case.time_us <= 0:
        return "the problem's bound is not known"
    ratio = case.time_us / case.bound_us
    return f"{100 * case.gap:.0f} % left to the bound" if ratio < 2 else f"{ratio:.1f}x the problem's bound"


def _what(case: Case, worst: Finding) -> str:
    work, device = case.work, case.device
    bandwidth = f"{100 * case.dram_use:.0f} % of the {_chip(device.name)}'s {device.dram_gb_s / 1e3:.2f} TB/s"
    match worst.bottleneck:
        case Bottleneck.AT_BOUND if case.dram_use >= 0.5 or case.streaming:
            return f"Memory bound: {bandwidth}"
        case Bottleneck.AT_BOUND:
            return f"At the problem's bound: {case.time_us:.1f} µs of {case.bound_us:.1f}"
        case Bottleneck.DRAM:
            return f"Memory bound: {bandwidth}"
        case Bottleneck.EXTRA_PASSES:
            return f"Extra passes over memory: {_passes(case):.1f}x the bytes the problem needs are moved"
        case Bottleneck.CACHE:
            again = f"{case.asked_passes:.0f} times what it needs" if case.asked_passes >= 2 else "its operands again"
            return f"Cache thrash: the caches carry {again}, {case.passes:.1f}x of it from device memory"
        case Bottleneck.NARROW:
            return f"Narrow access: a thread loads {work.load_bytes or 0:.0f} of 16 bytes at a time, too few in flight"
        case Bottleneck.UNCOALESCED:
            return f"Uncoalesced access: only {100 * (case.sector_efficiency or 0):.0f} % of the bytes moved are used"
        case Bottleneck.SPILLS:
            if not work.spill_bytes:
                return f"Registers spill: {100 * (work.spill_share or 0):.0f} % of the memory traffic is theirs"
            return f"Registers spill: {work.spill_bytes:,.0f} bytes a thread go through memory and back"
        case Bottleneck.TOO_FEW_PROGRAMS:
            return f"Too few programs: {int(work.programs or 0)} for {device.n_sms} SMs"
        case Bottleneck.TAIL:
            filled = f"{int(work.programs or 0)} programs fill {device.n_sms} SMs {work.waves or 0:.2f} times"
            return f"A thin last wave: {filled}"
        case Bottleneck.OCCUPANCY_REGISTERS | Bottleneck.OCCUPANCY_SHARED | Bottleneck.OCCUPANCY_BLOCKS:
            held = 100 * (work.occupancy or 0)
            return f"Low occupancy: {held:.0f} % of the warps an SM can hold, limited by {work.limiter}"
        case Bottleneck.LATENCY:
            return f"Latency bound: too little in flight, memory only at {100 * case.dram_use:.0f} % of its bandwidth"
        case Bottleneck.BARRIER:
            at, exchange = worst.evidence
            also = f", {exchange.value:.0f} % for what they exchange there" if exchange.value >= 5 else ""
            return f"Warps wait for each other: {at.value:.0f} {at.unit} at barriers{also}"
        case Bottleneck.BANK_CONFLICTS:
            return f"Shared-memory bank conflicts: {100 * (work.conflict_share or 0):.0f} % of its cycles are lost"
        case Bottleneck.NO_TENSOR_CORES:
            return "Tensor cores are not used: the matrix product runs on the CUDA cores"
        case Bottleneck.SPECIAL:
            return f"Special functions: their units are busy {100 * (work.special_share or 0):.0f} % of the time"
        case Bottleneck.INTEGER:
            return (
                f"Integer arithmetic, for addresses and indices, takes {100 * (work.integer_share or 0):.0f} % of issue"
            )
        case Bottleneck.COMPUTE:
            busy = worst.evidence[0]
            whose = "issue slots" if busy.name == "issue slots" else "arithmetic units"
            return f"Compute bound: the {whose} are busy {busy.value:.0f} % of the time"
        case Bottleneck.LAUNCH:
            launched = _launches(work.n_launches)
            return f"Launch bound: {100 * case.launching:.0f} % of the time goes into launching {launched}"
        case _:
            return "No single bottleneck stands out"


def _passes(case: Case) -> float:
    return case.passes if case.passes >= 1.2 else case.asked_passes


def _launches(count: float) -> str:
    return "one kernel" if count <= 1 else f"{count:.0f} kernels"


def _chip(name: str) -> str:
    """``A100-SXM4-80GB`` and ``NVIDIA H200`` as people say them."""
    return name.removeprefix("NVIDIA ").split("-")[0].split(" ")[0]
