"""One line for an event, with the run's state to look names up in. Pure."""

from kbtui.domain.event import Event
from kbtui.scheduler.state import RunState
from store.subject import subject


def line_of(event: Event, state: RunState) -> str:
    """The event as the ledger's subject says it; ``state`` has it applied already."""
    known = (*state.tried.values(), *state.open_batch.values())
    return subject(event, {t.candidate.id: t.candidate.summary for t in known}, state.first)
