"""The line above the keys: what the viewer just said, else what happened last; and what was asked and waits."""

from collections.abc import Sequence

from kbtui.tui.glyphs import Glyphs
from kbtui.tui.moment import Moment
from kbtui.tui.text import Line, Role, Told, line, spread, told_line
from kbtui.tui.view.log import command_words, said, sign_of


def status_line(moment: Moment | None, told: Told, width: int, g: Glyphs) -> Line:
    """``told``: the viewer's answer to the last key; a path in it is worth more than what waits beside it."""
    right = pending_words(moment, g) if moment is not None else ()
    if told.path:
        return told_line(told, width, g.ellipsis)
    if told.words:
        return spread(told_line(told, width, g.ellipsis), right, width, g.ellipsis)
    if moment is None or not moment.journal:
        return spread((), right, width, g.ellipsis)
    last = next((e for e in reversed(moment.journal) if sign_of(e, g)[0]), moment.journal[-1])
    return spread(line((" last: ", Role.DIM), (said(moment, last), Role.DIM)), right, width, g.ellipsis)


def pending_words(moment: Moment, g: Glyphs) -> Line:
    """What was asked and is not on the ledger yet."""
    waiting: Sequence[str] = [command_words(c.kind, c.argument) for c in moment.pending]
    if not waiting:
        return ()
    text = waiting[0] if len(waiting) == 1 else f"{waiting[0]} and {len(waiting) - 1} more"
    return line((f"{g.pending} asked: {text} ", Role.WARN))
