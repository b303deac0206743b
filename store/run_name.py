"""The name a run goes by here, where it began under another on another machine. Pure."""

from dataclasses import replace

from kbtui.domain.event import Envelope, RunStarted


def under_name(run: str, envelope: Envelope) -> Envelope:
    """The envelope as read in the run of that name: its start says the name the run has here."""
    event = envelope.event
    if isinstance(event, RunStarted) and event.run != run:
        return replace(envelope, event=replace(event, run=run))
    return envelope
