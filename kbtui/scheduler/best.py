"""The best verified kernel of a run: what the ledger's tree holds and what is shown as the result."""

from kbtui.domain.event import Decision, Event, RungCompleted
from kbtui.domain.rung import MEASURE
from kbtui.scheduler.state import RunState, Tried


def best_so_far(state: RunState) -> Tried | None:
    """The champion; before there is one, the incumbent of the highest rung from measure up; else the first kernel."""
    if state.champion:
        return state.tried[state.champion]
    held = [rung for rung in state.incumbents if rung >= MEASURE]
    if held:
        return state.tried[state.incumbents[max(held)]]
    return state.tried.get(state.first or "")


def best_commit_with(state: RunState, event: Event) -> str | None:
    """The commit of the best kernel once ``event`` has happened; None before any candidate."""
    match event:
        case RungCompleted(decision=Decision.CROWN):
            return state.tried[event.candidate].commit
        case RungCompleted(new_incumbent=True) if state.champion is None and event.rung >= MEASURE:
            highest = max((r for r in state.incumbents if r >= MEASURE), default=MEASURE)
            if event.rung >= highest:
                return state.tried[event.candidate].commit
    best = best_so_far(state)
    return best.commit if best else None
