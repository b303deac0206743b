"""How fast recorded candidates are, over the first kernel. Pure."""

from kbtui.domain.candidate import Origin
from kbtui.domain.pool import PoolCandidate, RecordedRung
from kbtui.domain.rung import CONFIRM


def speed_of(candidate: PoolCandidate) -> float | None:
    """Its speed over the first kernel where it was confirmed; the first kernel's own is one."""
    return speed_at(candidate.at(CONFIRM), candidate.origin)


def speed_at(recorded: RecordedRung | None, origin: Origin) -> float | None:
    """Its speed over the first kernel on this rung; None where it was not timed there."""
    if recorded is None or not recorded.outcome.verdict.ok or recorded.outcome.measurement is None:
        return None
    if origin.generator == "seed":
        return 1.0
    met = recorded.outcome.measurement.against("first")
    return met.ratio if met else None
