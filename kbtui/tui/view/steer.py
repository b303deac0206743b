"""What a key may do now, and if nothing, why; and what a person typed, as a command's argument."""

import json
import re
from dataclasses import replace

from kbtui.budget import budget_of_json
from kbtui.domain.codec import to_plain
from kbtui.domain.event import Budget, CommandKind
from kbtui.errors import UsageError
from kbtui.tui import fmt
from kbtui.tui.moment import Moment
from kbtui.tui.view.standing import Standing, standing_of

_NEEDS_CARD = (CommandKind.PIN, CommandKind.PRUNE, CommandKind.PROMOTE)
#: A longer one is a slip of the hand, and a number that has no clock.
LONGEST_S = 366 * 86_400.0
_MOST_DIGITS = 9
LONGEST_HINT = 1_000
_NEEDS_ENGINE = (CommandKind.PAUSE, CommandKind.RESUME, CommandKind.STOP)


def why_not(moment: Moment, kind: CommandKind, selected: str | None, readonly: bool = False) -> str | None:
    """Why the command can do nothing now, in one line with what would help; None when it can."""
    state = moment.state
    if readonly:
        return "this viewer only looks (--readonly)"
    if not moment.known:
        return "the run has no events yet; wait for the engine's first"
    if kind in _NEEDS_ENGINE:
        if state.ended is not None:
            return f"the run has ended ({state.ended.reason.value}); R resumes it, b raises its budget first"
        if not moment.engine_here:
            return "no engine works on this run; R resumes it"
    if kind is CommandKind.STOP and state.stop_asked:
        return "it is stopping already; the evaluation in flight is finished first"
    if kind is CommandKind.STOP and any(c.kind is kind for c in moment.pending):
        return "stop was asked already; the engine has not taken it yet"
    if any(c.kind is kind and c.argument == (selected or "") for c in moment.pending if kind in _NEEDS_CARD):
        return f"{kind.value} {selected} was asked already; the engine has not taken it yet"
    return _why_not_card(moment, kind, selected) if kind in _NEEDS_CARD else None


def _why_not_card(moment: Moment, kind: CommandKind, selected: str | None) -> str | None:
    tried = moment.state.tried.get(selected or "")
    if tried is None:
        return f"no candidate under the cursor to {kind.value}; choose one with the arrows"
    standing, name = standing_of(moment, tried), tried.candidate.id
    active = standing in (Standing.RUNNING, Standing.WAITING)
    if kind is CommandKind.PIN and not active and not tried.pinned:
        return f"{name} is {standing.value} and waits for nothing; + sends it on to the next rung"
    if kind is CommandKind.PRUNE and not active:
        return f"{name} is {standing.value} already; nothing to prune"
    if kind is CommandKind.PROMOTE:
        if active:
            return f"{name} is {standing.value}; P pins it to go first"
        if standing is Standing.REJECTED:
            return f"{name} was rejected by the gate; a rejected kernel cannot be promoted"
        if standing is Standing.CHAMPION:
            return f"{name} is the champion; there is no higher rung"
    return None


def wrong_hint(text: str) -> str | None:
    """What is wrong with a hint, or None: it goes into every prompt from now on, which has to hold a kernel too."""
    n = len(text.strip())
    if n > LONGEST_HINT:
        return f"a hint is a sentence of at most {LONGEST_HINT} characters; this has {n:,}"
    return None if n else "say something, or esc"


def parse_budget(text: str, now: Budget) -> Budget:
    """``30m``, ``+10m``, ``2h``, ``90s``, ``gpu 5m``, ``200 candidates``, ``none``; raises ValueError with the forms.

    A plus sign adds to the limit in force. Other limits stay as they are.
    """
    said = text.strip().lower()
    if said in ("none", "no limit", "unlimited"):
        return Budget()
    count = re.fullmatch(r"(\+?)\s*(\d+)\s*c(?:andidates?)?", said)
    if count:
        base = (now.candidates or 0) if count[1] else 0
        if len(count[2]) > _MOST_DIGITS:
            raise ValueError("more than a billion candidates is no limit: say none")
        return replace(now, candidates=base + int(count[2]))
    span = re.fullmatch(r"(gpu\s+)?(\+?)\s*(\d+(?:\.\d+)?)\s*([smh])", said)
    if span is None:
        raise ValueError("say 30m, +10m, 2h, 90s, gpu 5m, 200 candidates or none")
    seconds = float(span[3]) * {"s": 1, "m": 60, "h": 3600}[span[4]]
    if seconds > LONGEST_S:
        raise ValueError("longer than a year is no limit: say none")
    if span[1]:
        return replace(now, gpu_s=seconds + ((now.gpu_s or 0) if span[2] else 0))
    return replace(now, wall_s=seconds + ((now.wall_s or 0) if span[2] else 0))


def spent_already(moment: Moment, budget: Budget) -> str:
    """What of a budget is spent already, in words; empty where something of each limit is left."""
    if budget.wall_s is not None and moment.wall_s >= budget.wall_s:
        return f"{fmt.clock(moment.wall_s)} of wall time"
    if budget.gpu_s is not None and moment.gpu_s >= budget.gpu_s:
        return f"{fmt.clock(moment.gpu_s)} of GPU time"
    if budget.candidates is not None and moment.n_candidates >= budget.candidates:
        return f"{moment.n_candidates} candidates"
    return ""


def budget_of(argument: str) -> Budget:
    """The inverse of ``budget_argument``; no limits where it is none of this viewer's."""
    try:
        return budget_of_json(argument)
    except UsageError:
        return Budget()


def budget_argument(budget: Budget) -> str:
    """The command's argument: JSON of the limits."""
    return json.dumps(to_plain(budget))
