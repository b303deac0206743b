"""The best verified kernel of a run: what the ledger's tree holds and what is shown as the result."""

from dataclasses import replace

from kbtui.domain.event import Decision, Event, RungCompleted
from kbtui.domain.rung import MEASURE
from kbtui.scheduler.state import RunState, Tried


def best_so_far(state: RunState) -> Tried | None:
    """The champion; before there is one, whoever leads; else the first kernel."""
    if state.champion:
        return state.tried[state.champion]
    return _leader(state) or state.tried.get(state.first or "")


def _leader(state: RunState) -> Tried | None:
    """The incumbent of the highest rung from measure up, unless one of a rung below is ahead of it there.

    That one has won its match already; it only waits for the dearer rung, perhaps for a long time.
    """
    best: Tried | None = None
    for rung in sorted((r for r in state.incumbents if r >= MEASURE), reverse=True):
        held = state.tried[state.incumbents[rung]]
        if best is None or (max(held.results) == rung and _ahead(held, best, rung)):
            best = held
    return best


def _ahead(one: Tried, other: Tried, rung: int) -> bool:
    scores = [t.results[rung].score if rung in t.results else None for t in (one, other)]
    return scores[0] is not None and scores[1] is not None and scores[0] > scores[1]


def best_commit_with(state: RunState, event: Event) -> str | None:
    """The commit of the best kernel once ``event`` has happened; None before any candidate."""
    if isinstance(event, RungCompleted) and event.new_incumbent:
        state = _after(state, event)
    best = best_so_far(state)
    return best.commit if best else None


def _after(state: RunState, event: RungCompleted) -> RunState:
    """The state as far as its best kernel goes, had the event happened."""
    tried = state.tried[event.candidate]
    done = replace(tried, results={**tried.results, event.rung: event})
    return replace(
        state,
        tried={**state.tried, event.candidate: done},
        incumbents={**state.incumbents, event.rung: event.candidate},
        champion=event.candidate if event.decision is Decision.CROWN else state.champion,
    )
