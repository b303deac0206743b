"""Views of a run by structure: what each kernel does, told apart from its constants."""

from collections.abc import Callable

from kbtui.domain.event import Decision
from kbtui.scheduler.score import promise
from kbtui.scheduler.state import RunState, Tried


def of_structure(state: RunState, structure: str) -> list[Tried]:
    return [t for t in state.tried.values() if t.candidate.structure == structure]


def n_timed(state: RunState, structure: str) -> int:
    """How many candidates of a structure have been timed at the screen or above."""
    return sum(1 for t in of_structure(state, structure) if t.score is not None)


def is_best_of_structure(state: RunState, candidate: str, rung: int, score: float) -> bool:
    """Whether no other candidate of the same structure scored higher on this rung."""
    structure = state.tried[candidate].candidate.structure
    results = (t.results.get(rung) for t in of_structure(state, structure) if t.candidate.id != candidate)
    return all(score >= (r.score or 0.0) for r in results if r is not None)


def best_of_each(state: RunState, chosen: Callable[[Tried], bool]) -> list[tuple[Tried, float]]:
    """Who promises most among the chosen of every structure, with the promise, best first; ties to the older."""
    best: dict[str, tuple[Tried, float]] = {}
    for tried in state.tried.values():
        promised = promise(state, tried)
        if promised is None or not is_eligible(tried) or not chosen(tried):
            continue
        held = best.get(tried.candidate.structure)
        if held is None or promised > held[1]:
            best[tried.candidate.structure] = (tried, promised)
    return sorted(best.values(), key=lambda b: (-b[1], b[0].admitted_seq))


def is_eligible(tried: Tried) -> bool:
    """Whether it may be a parent or a champion: found correct on every rung it finished, not pruned by a person."""
    last = tried.last
    return last is not None and last.decision not in (Decision.REJECT, Decision.SET_ASIDE) and not tried.dropped
