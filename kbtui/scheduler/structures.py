"""Views of a run by structure: what each kernel does, told apart from its constants."""

from kbtui.domain.event import Decision
from kbtui.domain.rung import SCREEN
from kbtui.scheduler.state import RunState, Tried


def of_structure(state: RunState, structure: str) -> list[Tried]:
    return [t for t in state.tried.values() if t.candidate.structure == structure]


def n_timed(state: RunState, structure: str) -> int:
    """How many candidates of a structure have been timed at the screen or above."""
    return sum(1 for t in of_structure(state, structure) if t.score is not None)


def is_best_of_structure(state: RunState, candidate: str, score: float) -> bool:
    """Whether ``score`` is at least that of every other candidate of the same structure."""
    structure = state.tried[candidate].candidate.structure
    others = (t.score for t in of_structure(state, structure) if t.candidate.id != candidate)
    return all(score >= other for other in others if other is not None)


def best_of_each(state: RunState) -> list[Tried]:
    """The fastest verified candidate of every structure, fastest first; ties to the older."""
    best: dict[str, Tried] = {}
    for tried in state.tried.values():
        if tried.score is None or not _alive(tried):
            continue
        held = best.get(tried.candidate.structure)
        if held is None or tried.score > (held.score or 0.0):
            best[tried.candidate.structure] = tried
    return sorted(best.values(), key=lambda t: (-(t.score or 0.0), t.admitted_seq))


def _alive(tried: Tried) -> bool:
    last = tried.last
    return last is not None and last.rung >= SCREEN and last.decision not in (Decision.REJECT, Decision.SET_ASIDE)
