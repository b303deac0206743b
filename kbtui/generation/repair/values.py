"""What parsing and mending a reply come to."""

from dataclasses import dataclass

from kbtui.domain.verdict import Reason


@dataclass(frozen=True, slots=True)
class Mended:
    """A source that can go to the gate, and what was mended to make it so, one line each."""

    source: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rejected:
    """A reply no source could be made of, and why, in words that help the next reply."""

    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class FoundCode:
    """The code in a reply, and how it was found, one line each."""

    code: str
    notes: tuple[str, ...] = ()
    cut_off: bool = False
