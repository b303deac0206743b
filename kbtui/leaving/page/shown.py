"""What a report is made from, and where each candidate ended up. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from kbtui.domain.event import Decision, Envelope
from kbtui.domain.problem import ProblemSpec
from kbtui.scheduler.state import RunState, Tried


@dataclass(frozen=True, slots=True)
class Shown:
    """``spec`` is None where this machine no longer has the problem as the run used it (``no_problem`` says why)."""

    state: RunState
    envelopes: Sequence[Envelope]
    best: Tried
    first: Tried | None
    best_source: str
    first_source: str
    spec: ProblemSpec | None
    no_problem: str
    exporter: dict[str, str]


#: A sign and a word for each end, so that colour is never the only one.
SIGNS = {
    "champion": "★",
    "first kernel": "◇",
    "incumbent": "◆",
    "waiting": "○",
    "pruned": "↓",
    "rejected": "✗",
    "set aside": "?",
}


def standing(state: RunState, tried: Tried) -> str:
    """One of the words in ``SIGNS``."""
    candidate = tried.candidate.id
    if candidate == state.champion:
        return "champion"
    if candidate == state.first:
        return "first kernel"
    if tried.waiting_at is not None:
        return "waiting"
    match tried.last.decision if tried.last else None:
        case Decision.REJECT:
            return "rejected"
        case Decision.SET_ASIDE:
            return "set aside"
    return "incumbent" if candidate in state.incumbents.values() else "pruned"
