"""Text for the page: everything escaped, numbers as a person reads them. Pure."""

import re
from html import escape

from kbtui.domain.measurement import Comparison
from kbtui.tui import fmt
from kbtui.tui.glyphs import UNICODE

#: Characters that HTML may not hold, or that would turn the reading order around.
_UNWANTED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def esc(value: object) -> str:
    """Safe as text and inside a quoted attribute; what a page cannot hold becomes U+FFFD."""
    return escape(_UNWANTED.sub("\ufffd", str(value)), quote=True)


def tag(name: str, inner: str = "", **attributes: object) -> str:
    """An element around HTML. Attribute values are escaped; ``class_`` is ``class``, underscores become dashes."""
    named = ((key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items() if value is not None)
    written = "".join(f' {key}="{esc(value)}"' for key, value in named)
    return f"<{name}{written}>{inner}</{name}>"


def ratio(value: float | None) -> str:
    return fmt.ratio(value, UNICODE) if value is not None else ""


def interval(ratio_: float, low: float, high: float) -> str:
    return fmt.interval(ratio_, low, high, UNICODE)


def comparison(found: Comparison | None) -> str:
    return interval(found.ratio, found.low, found.high) if found else ""


def us(value: float | None) -> str:
    return fmt.time_us(value, UNICODE) if value is not None else ""


def us_range(value: float, low: float, high: float) -> str:
    return us(value) if low == high else f"{us(value)} ({low:.4g}–{high:.4g})"


def seconds(value: float) -> str:
    return f"{value:.1f} s" if value < 100 else fmt.clock(value)


def share(part: float, whole: float) -> str:
    return fmt.share(part, whole)
