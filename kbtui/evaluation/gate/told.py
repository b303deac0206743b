"""What a candidate's child says, taken apart with suspicion: its process may have been taken over. Pure.

Every function raises WorkerNonsense for an answer that the candidate's role never gives, so that a forged frame ends
its candidate and not the engine.
"""

import math
from dataclasses import dataclass
from typing import Any

from kbtui.domain.verdict import Reason
from kbtui.evaluation.process.failures import WorkerNonsense

#: Reasons that a child may give against its own candidate.
TOLD_REASONS = frozenset({
    Reason.WRONG_TYPE, Reason.WRONG_SHAPE, Reason.WRONG_DTYPE, Reason.ALIASES_INPUT, Reason.GLOBALS_CHANGED,
    Reason.SANDBOX_VIOLATION, Reason.KERNELS_DO_NOTHING, Reason.INPUT_MODIFIED,
})  # fmt: skip
_MAX_TEXT, _MAX_NAMES, _MAX_US = 300, 32, 1e9
_MIN_US = 1e-6


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What one checked call did. ``fault``: what is wrong with its outputs' kind, with torch or with the harness."""

    fault: tuple[Reason, str] | None
    n_launches: int
    forbidden: tuple[str, ...]


def check_report(value: Any) -> CheckReport:
    match value:
        case {"fault": fault, "n_launches": int(n_launches), "forbidden": list(names)} if n_launches >= 0:
            return CheckReport(_fault(fault), n_launches, tuple(_text(name) for name in names[:_MAX_NAMES]))
    raise WorkerNonsense("check", value)


def returned(value: Any) -> bool:
    """Whether a call without its kernels gave outputs of the right kind."""
    match value:
        case {"returned": bool(whether)}:
            return whether
    raise WorkerNonsense("no_op", value)


def count(value: Any, method: str) -> int:
    """A number of calls."""
    if type(value) is int and 0 <= value < _MAX_US:
        return value
    raise WorkerNonsense(method, value)


def durations_us(value: Any, n: int, method: str) -> list[float]:
    """``n`` times in microseconds, all of them positive: their logarithms are taken."""
    if isinstance(value, list) and len(value) == n:
        return [_number(item, method, _MAX_US, _MIN_US) for item in value]
    raise WorkerNonsense(method, value)


def seconds(value: Any, method: str) -> float:
    return _number(value, method, _MAX_US)


def _number(value: Any, method: str, most: float, least: float = 0.0) -> float:
    # An int may be too long for a float; a bool is one too.
    if type(value) is int and abs(value) < most:
        value = float(value)
    if type(value) is float and math.isfinite(value) and least <= value <= most:
        return value
    raise WorkerNonsense(method, value)


def _fault(value: Any) -> tuple[Reason, str] | None:
    match value:
        case None:
            return None
        case {"reason": str(reason), "detail": str(detail)} if reason in TOLD_REASONS:
            return Reason(reason), detail[:_MAX_TEXT]
    raise WorkerNonsense("check", value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value[:_MAX_TEXT]
    raise WorkerNonsense("check", value)
