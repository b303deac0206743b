"""What a case's numbers amount to: reached or not, a win or PyTorch kept, how much of the memory's rate. Pure."""

import math
from dataclasses import dataclass
from enum import StrEnum

from benchmarks.six.cases import Case
from benchmarks.six.record import CHAMPION, MEASURED, Against, CaseRecord, Contest
from kbtui.domain.measurement import Outcome
from kbtui.domain.wording import signed
from kbtui.evaluation.baselines import CEILING_BYTES, COMPILED, EAGER

TOLERANCE, TOLERANCE_SHORT = 0.03, 0.10
SHORT_MS = 0.020
BANDWIDTH_ASKED = 0.90


class Standing(StrEnum):
    """What a person should run. WIN: the champion is faster than eager and all of torch.compile that was timed."""

    WIN = "win"
    OVER_EAGER_ALONE = "faster than eager; torch.compile was not timed"
    KEEP_EAGER = "PyTorch is kept"
    KEEP_COMPILED = "torch.compile is kept"
    NOT_MEASURED = "not measured"


class Target(StrEnum):
    PASSED = "passed"
    REACHED = "reached"
    MISSED = "missed"
    NOT_MEASURED = "not measured"


class Bound(StrEnum):
    """What no kernel of the operation can be faster than."""

    MEMORY = "memory"
    COMPUTE = "compute"
    LAUNCH = "launch"


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """GB/s of the champion (the operation's least bytes over its time) and of the ceiling in the same turns.

    ``running_share``: the champion's part of the ceiling with an empty kernel's time taken off both.
    """

    champion_gb_s: float
    ceiling_gb_s: float
    running_share: float

    @property
    def share(self) -> float:
        return self.champion_gb_s / self.ceiling_gb_s

    @property
    def enough(self) -> bool:
        return self.share >= BANDWIDTH_ASKED


def tolerance(case: Case) -> float:
    """3 % of what the expert reached, 10 % where that took under 20 microseconds."""
    return TOLERANCE_SHORT if case.expert_ms is not None and case.expert_ms < SHORT_MS else TOLERANCE


def target(case: Case, ratio: float | None) -> Target:
    """How the champion's speedup over eager stands beside the expert's."""
    if ratio is None:
        return Target.NOT_MEASURED
    if ratio >= case.expert:
        return Target.PASSED
    return Target.REACHED if ratio >= case.expert * (1 - tolerance(case)) else Target.MISSED


def target_words(case: Case, ratio: float | None) -> str:
    """``passed``, ``reached``, ``missed (-5.2 %)`` or ``not measured``."""
    found = target(case, ratio)
    if found is not Target.MISSED or ratio is None:
        return str(found)
    return f"missed ({signed(ratio / case.expert)} %)"


def standing(record: CaseRecord) -> Standing:
    """A win only where adjudication says faster, over eager and over every compiled mode that was timed, if any was."""
    contest = record.contest
    eager = contest.beside(EAGER)
    if record.kind != MEASURED or eager is None:
        return Standing.NOT_MEASURED
    lost = [a for a in (eager, *_compiled(contest)) if a.outcome != Outcome.FASTER or (a.ratio or 0.0) <= 1.0]
    if not lost:
        return Standing.WIN if _compiled(contest) else Standing.OVER_EAGER_ALONE
    best = min(lost, key=lambda a: a.ratio or 0.0)
    return Standing.KEEP_EAGER if best is eager else Standing.KEEP_COMPILED


def over_eager(contest: Contest, name: str) -> float | None:
    """Another's speedup over eager, both from the champion's turns; the champion's own for ``champion``."""
    eager = contest.beside(EAGER)
    if eager is None or eager.ratio is None:
        return None
    if name == CHAMPION:
        return eager.ratio
    other = contest.beside(name)
    return eager.ratio / other.ratio if other and other.ratio else None


def best_compiled(contest: Contest) -> Against | None:
    """The fastest of torch.compile's modes."""
    return min(_compiled(contest), key=lambda a: a.ratio or 0.0, default=None)


def bound(case: Case, record: CaseRecord) -> Bound:
    """By the data sheet: bytes at the memory's rate, operations at the tensor cores', or an empty kernel."""
    device = record.device
    by_memory = record.bytes_moved / (device.dram_gb_s * 1e3)
    by_compute = record.flops / (device.peak_tflops(case.dtype, tensor_cores=True) * 1e6)
    if max(by_memory, by_compute) < device.launch_us:
        return Bound.LAUNCH
    return Bound.MEMORY if by_memory >= by_compute else Bound.COMPUTE


def bandwidth(case: Case, record: CaseRecord) -> Bandwidth | None:
    """Of measured cases only, beside the ceiling of the same contest."""
    ceiling = record.contest.beside(case.ceiling)
    if record.kind != MEASURED or ceiling is None or not ceiling.us:
        return None
    us, launch_us = record.contest.us, record.device.launch_us
    at_ceiling_us = record.bytes_moved / CEILING_BYTES * (ceiling.us - launch_us)
    running = at_ceiling_us / (us - launch_us) if us > launch_us else math.inf
    return Bandwidth(record.bytes_moved / us / 1e3, CEILING_BYTES / ceiling.us / 1e3, running)


def asked_bandwidth(case: Case, record: CaseRecord) -> Bandwidth | None:
    """Of a case that memory bounds; None of others, of which none is asked."""
    return bandwidth(case, record) if bound(case, record) is Bound.MEMORY else None


def _compiled(contest: Contest) -> tuple[Against, ...]:
    return tuple(a for name in COMPILED if (a := contest.beside(name)) is not None)
