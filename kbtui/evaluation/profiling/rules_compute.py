"""Rules of the diagnosis about arithmetic: tensor cores, special functions, integers, units at their limit. Pure."""

from collections.abc import Iterator

from kbtui.domain.profile import Bottleneck, Evidence, Finding
from kbtui.evaluation.profiling.case import Case, found

#: A unit this busy limits a kernel: pipelines seldom go beyond 0.8.
_BUSY = 0.4


def no_tensor_cores(case: Case) -> Iterator[Finding]:
    """Matters where the problem's arithmetic on the CUDA cores takes a good part of the time.

    The weight is what tensor cores would save; SMs without a program do not count as slow arithmetic.
    """
    if not case.wants_tensor_cores:
        return
    sms = min(1.0, (case.work.programs or case.device.n_sms) / case.device.n_sms)
    used = min(1.0, case.plain_us / (case.time_us * sms))
    floor_us = max(case.tensor_us, case.bound_us)
    evidence = (
        Evidence("CUDA cores at best", case.plain_us, "us"),
        Evidence("tensor cores at best", case.tensor_us, "us"),
    )
    saved = max(0.0, 1.0 - floor_us / case.time_us)
    yield from found(Bottleneck.NO_TENSOR_CORES, used**0.25 * saved * sms, *evidence)


def special_functions(case: Case) -> Iterator[Finding]:
    """Exponentials, logarithms, roots and reciprocals, sixteen a clock and SM."""
    use, integer = case.work.special_share or 0.0, case.work.integer_share or 0.0
    if use >= _BUSY and use > max(case.dram_use, integer):
        evidence = Evidence("special-function units", 100 * use, "% of peak")
        yield from found(Bottleneck.SPECIAL, 0.8 * use * case.calculating, evidence)


def integer(case: Case) -> Iterator[Finding]:
    """Addresses and indices: divisions above all."""
    use = case.work.integer_share or 0.0
    if use >= _BUSY and use > case.dram_use:
        evidence = Evidence("integer instructions", 100 * use, "% of issue")
        yield from found(Bottleneck.INTEGER, 0.8 * use * case.calculating, evidence)


def compute(case: Case) -> Iterator[Finding]:
    """The residue: busy pipes or issue slots that no kind of instruction accounts for, or the problem's own arithmetic.

    Busy issue slots are a symptom; what fills them, and could be left out, is the cause, and has a rule of its own.
    The problem's own arithmetic at its unit's peak cannot be left out.
    """
    rate = case.device.peak_tflops(case.dtype, tensor_cores=bool(case.work.tensor_cores))
    useful = min(1.0, case.flops / (rate * 1e6) / case.time_us) if case.time_us > 0 else 0.0
    busy = max(case.work.compute_share or 0.0, case.work.issue_share or 0.0)
    use = max(useful, _unexplained(case, busy))
    if use < _BUSY or use <= case.dram_use:
        return
    # A unit that is busy with what another does faster is no praise.
    elsewhere = 0.5 if case.wants_tensor_cores else 1.0
    weight = 0.75 * max(useful, _unexplained(case, busy) * case.calculating) * elsewhere
    # The schedulers are as busy as the pipes at least: what is left between them went into no one pipe.
    slots = (case.work.issue_share or 0.0) > max(case.work.compute_share or 0.0, useful)
    evidence = Evidence("issue slots" if slots else "arithmetic", 100 * use, "% of peak")
    yield from found(Bottleneck.COMPUTE, weight, evidence)


def _unexplained(case: Case, busy: float) -> float:
    """What is left of busy units once special functions or integers have what is theirs, 0 to 1."""
    named = max(case.work.special_share or 0.0, case.work.integer_share or 0.0)
    return max(0.0, busy - (named if named >= _BUSY else 0.0))
