"""The run's events as one line each, in the words of the ledger's commits (``git log --first-parent``)."""

import json
from collections.abc import Iterator, Mapping

from kbtui.domain.event import (
    CandidateAdmitted,
    CommandAccepted,
    CommandKind,
    Decision,
    Envelope,
    ProposalsMade,
    RungCompleted,
)
from kbtui.tui import fmt
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.moment import Moment
from kbtui.tui.text import Line, Part, Role, wrap
from store.subject import subject

_DECIDED = {
    Decision.PROMOTE: Role.PLAIN,
    Decision.PRUNE: Role.DIM,
    Decision.REJECT: Role.BAD,
    Decision.SET_ASIDE: Role.WARN,
    Decision.CROWN: Role.GOOD,
}


def log_line(moment: Moment, envelope: Envelope, g: Glyphs) -> Line:
    """When (the run's wall time), a sign where the event is worth one, and what happened."""
    sign, role = sign_of(envelope, g)
    return ((f"{fmt.clock(envelope.wall_s):>7} ", Role.DIM), (f"{sign or ' '} ", role), (said(moment, envelope), role))


def said(moment: Moment, envelope: Envelope) -> str:
    """The event's subject line."""
    return subject(envelope.event, _Summaries(moment), moment.state.first)


def sign_of(envelope: Envelope, g: Glyphs) -> Part:
    """A sign and a role for an event's line."""
    match envelope.event:
        case CandidateAdmitted() | ProposalsMade():
            return "", Role.DIM
        case RungCompleted(decision=Decision.CROWN):
            return g.champion, Role.GOOD
        case RungCompleted(new_incumbent=True):
            return g.incumbent, Role.GOOD
        case RungCompleted(decision=decision):
            signs = {Decision.PROMOTE: g.promoted, Decision.PRUNE: g.pruned, Decision.REJECT: g.rejected}
            return signs.get(decision, g.unverified), _DECIDED[decision]
        case CommandAccepted():
            return g.cursor, Role.ACCENT
        case _:
            return g.ended, Role.STRONG


class _Summaries(Mapping[str, str]):
    """Candidates' summaries by id, looked up in the state when asked."""

    def __init__(self, moment: Moment) -> None:
        self._tried = moment.state.tried

    def __getitem__(self, key: str) -> str:
        return self._tried[key].candidate.summary

    def __iter__(self) -> Iterator[str]:
        return iter(self._tried)

    def __len__(self) -> int:
        return len(self._tried)


def command_words(kind: CommandKind, argument: str, parent: str | None = None) -> str:
    """A command as a person would say it; a submitted source is not repeated."""
    match kind:
        case CommandKind.SUBMIT:
            return f"submit a kernel{' made from ' + parent if parent else ''}"
        case CommandKind.BUDGET:
            return f"budget {budget_words(argument)}"
        case CommandKind.HINT:
            return f"hint “{argument}”"
        case _:
            return f"{kind.value} {argument}".strip()


def budget_words(argument: str) -> str:
    """The JSON of a budget as words; the text itself where it is none."""
    try:
        fields = json.loads(argument)
    except ValueError:
        return argument
    said_limits = []
    if fields.get("wall_s") is not None:
        said_limits.append(f"{fmt.clock(float(fields['wall_s']))} of wall time")
    if fields.get("gpu_s") is not None:
        said_limits.append(f"{fmt.clock(float(fields['gpu_s']))} of GPU time")
    if fields.get("candidates") is not None:
        said_limits.append(f"{fields['candidates']} candidates")
    return ", ".join(said_limits) or "without a limit"


def empty_log(width: int, query: str) -> list[Line]:
    if query:
        return wrap(f"No event says “{query}”. Esc shows all again.", width, Role.DIM)
    return wrap(
        "Every event of the run appears here, newest first, as it is written to the ledger. The first comes when the "
        "engine has opened the problem; R starts an engine where there is none.",
        width,
        Role.DIM,
    )
