"""Durations as people write them: 90s, 10m, 1h30m. Pure."""

import re

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
    if not seconds:
        raise UsageError(f"{text!r} is not a duration", "write it as 90s, 10m or 1h30m")
    return seconds


def format_duration(seconds: float) -> str:
    """The shortest of such texts for whole seconds: 5400 is ``1h30m``. Inverse of ``parse_duration_s``."""
    hours, rest = divmod(round(seconds), 3600)
    minutes, rest = divmod(rest, 60)
    parts = [f"{n}{unit}" for n, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if n]
    return "".join(parts) or "0s"
