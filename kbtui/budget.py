"""Durations as people write them: 90s, 10m, 1h30m; a budget as a command carries it. Pure."""

import json
import math
import re
from dataclasses import astuple

from kbtui.domain.codec import from_plain
from kbtui.domain.event import Budget
from kbtui.errors import UsageError

_UNIT_S = {"h": 3600.0, "m": 60.0, "s": 1.0}
_PARTS = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")


def parse_duration_s(text: str) -> float:
    """Seconds of ``90s``, ``10m``, ``1h30m`` or ``2.5h``; a bare number is seconds.

    Raises UsageError for anything else and for durations that are not above zero.
    """
    lowered = text.strip().lower()
    match = _PARTS.fullmatch(f"{lowered}s" if lowered[-1:].isdigit() and not re.search("[hms]", lowered) else lowered)
    amounts = match.groups() if match else ()
    seconds = sum(float(a) * unit for a, unit in zip(amounts, _UNIT_S.values(), strict=False) if a)
    if not 0 < seconds < math.inf:
        raise UsageError(f"{text!r} is not a duration", "write it as 90s, 10m or 1h30m")
    return seconds


def budget_of_json(text: str) -> Budget:
    """The budget in a command's argument. Raises UsageError on what is none, or holds a limit not above zero."""
    try:
        plain = json.loads(text)
        unknown = plain.keys() - Budget.__dataclass_fields__.keys()
        budget: Budget = from_plain(Budget, plain)
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        raise _no_budget(text) from None
    limits = [limit for limit in astuple(budget) if limit is not None]
    if unknown or any(isinstance(limit, bool) or not 0 < limit < math.inf for limit in limits):
        raise _no_budget(text)
    return budget


def _no_budget(text: str) -> UsageError:
    return UsageError(f"{text[:80]!r} is not a budget", 'write it as {"wall_s": 600, "candidates": 200, "gpu_s": null}')


def format_duration(seconds: float) -> str:
    """The shortest of such texts, to the millisecond: 5400 is ``1h30m``. Inverse of ``parse_duration_s``."""
    hours, rest_ms = divmod(round(seconds * 1000), 3_600_000)
    minutes, rest_ms = divmod(rest_ms, 60_000)
    rest = f"{rest_ms / 1000:.3f}".rstrip("0").rstrip(".")
    parts = [f"{n}{unit}" for n, unit in ((hours, "h"), (minutes, "m"), (rest if rest_ms else 0, "s")) if n]
    return "".join(parts) or "0s"
