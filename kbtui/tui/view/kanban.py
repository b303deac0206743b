"""The cards as a board: one column a rung, two lines a card."""

from collections.abc import Sequence

from kbtui.tui.glyphs import Glyphs
from kbtui.tui.moment import Moment
from kbtui.tui.text import Line, Role, clip, fit, line, spread, width_of
from kbtui.tui.view.board import BoardView, Card
from kbtui.tui.view.standing import ROLES, Standing, glyph_of

#: Lines a card takes.
CARD_LINES = 2
#: The narrowest column in which a card's state can be read.
NARROWEST_CELL = 14
#: From here on a card has room for its state's whole word.
_WHOLE_FROM = 18
_SHORT = {
    Standing.RUNNING: "runs",
    Standing.WAITING: "waits",
    Standing.UNFINISHED: "left",
    Standing.CHAMPION: "champ",
    Standing.INCUMBENT: "best",
    Standing.REJECTED: "reject",
    Standing.UNVERIFIED: "unverf",
    Standing.WAS_BEST: "formr",
}


def columns_of(view: BoardView) -> tuple[tuple[Card, ...], ...]:
    """Each rung's cards in the board's order: who is there now, or ended there."""
    return tuple(tuple(c for c in view.cards if c.rung == column.index) for column in view.columns)


def leader_of(moment: Moment) -> str | None:
    """The card to look at first: what runs, and when the run has ended its champion."""
    running = moment.running
    return running[0] if running is not None else moment.state.champion if moment.state.ended is not None else None


def card_lines(card: Card, width: int, here: bool, g: Glyphs) -> tuple[Line, Line]:
    """A card in ``width`` cells: sign, id and state; operator and score under it."""
    role = ROLES[card.standing]
    flags = f"{card.flags}{g.pending + card.asked if card.asked else ''}"
    gap = " " if width >= _WHOLE_FROM else ""
    state = card.standing.value if width >= _WHOLE_FROM else _SHORT.get(card.standing, card.standing.value)
    top = line((g.cursor if here else " ", Role.ACCENT), (f"{glyph_of(card.standing, g)}{gap}{card.id} ", role))
    top += line((f"{flags} " if flags else "", Role.WARN), (state, role))
    number = card.score or (card.number[0] if card.standing is not Standing.WAITING else "")
    room = max(width - 4 - len(number), 0)
    below = line(("   ", Role.PLAIN), (fit(card.operator, room, g.ellipsis).rstrip() if room > 3 else "", Role.DIM))
    number_role = Role.DIM if card.standing in (Standing.PRUNED, Standing.REJECTED) else Role.PLAIN
    return _exactly(top, width, g), _exactly(spread(below, ((number, number_role),), width - 1, g.ellipsis), width, g)


def _exactly(parts: Line, width: int, g: Glyphs) -> Line:
    """The line cut or padded to ``width`` cells, the last of them blank."""
    cut = clip(parts, width - 1, g.ellipsis)
    return (*cut, (" " * max(width - width_of(cut), 0), Role.PLAIN))


def n_lines(columns: Sequence[Sequence[Card]]) -> int:
    return CARD_LINES * max((len(c) for c in columns), default=0)
