"""What the engine may be told to do next."""

from dataclasses import dataclass

from kbtui.domain.event import EndReason
from kbtui.domain.proposal import Phase


@dataclass(frozen=True, slots=True)
class AdmitFirst:
    """Put the problem's own kernel in the queue as the first candidate."""


@dataclass(frozen=True, slots=True)
class Evaluate:
    candidate: str
    rung: int


@dataclass(frozen=True, slots=True)
class Propose:
    """Ask a generator about a parent (None: drafts) for at most ``limit`` candidates; ``why`` in one line."""

    generator: str
    parent: str | None
    phase: Phase
    limit: int
    why: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do until a command arrives, or ``why`` has passed."""

    why: str = "paused"


@dataclass(frozen=True, slots=True)
class Finish:
    reason: EndReason
    detail: str


Action = AdmitFirst | Evaluate | Propose | Wait | Finish
