"""Numbers and counts as every part of kbtui words them. Pure."""


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """``1 pair``, ``3 pairs``; ``plural`` where the noun takes more than an s."""
    return f"{n} {noun if n == 1 else plural or noun + 's'}"


def percent(ratio: float) -> str:
    """A ratio as a signed change with its unit: ``+34.2 %`` for 1.342; never a negative zero."""
    return f"{signed(ratio)} %"


def signed(ratio: float) -> str:
    """``percent`` without its unit: ``+34.2``."""
    return f"{round((ratio - 1.0) * 100, 1) + 0.0:+.1f}"


def sure(confidence: float) -> str:
    """A confidence (0 to 1), never rounded up to certainty: ``> 99.9 %``, ``99.3 %``, ``87 %``."""
    shown = 100 * confidence
    return "> 99.9 %" if shown >= 99.95 else f"{shown:.1f} %" if shown >= 99 else f"{shown:.0f} %"
