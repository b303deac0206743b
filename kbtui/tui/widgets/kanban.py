"""The cards in a column a rung, with a cursor that moves both ways."""

from collections.abc import Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content

from kbtui.tui.glyphs import Glyphs
from kbtui.tui.text import Line
from kbtui.tui.view.board import Card, cell_width
from kbtui.tui.view.kanban import CARD_LINES, card_lines, n_lines
from kbtui.tui.widgets.line_list import LineList
from kbtui.tui.widgets.paint import paint


class Kanban(LineList):
    """Up and down move in a column, left and right to the nearest card of the next column that has one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "aside(-1)", "Column to the left", show=False),
        Binding("right", "aside(1)", "Column to the right", show=False),
    ]

    def __init__(self, glyphs: Glyphs, id: str) -> None:  # noqa: A002
        super().__init__(cursor=False, glyphs=glyphs, id=id)
        self.columns: Sequence[Sequence[Card]] = ()
        self.at = (0, 0)

    @property
    def key(self) -> str | None:
        """The card under the cursor."""
        column, row = self.at
        cards = self.columns[column] if column < len(self.columns) else ()
        return cards[row].id if row < len(cards) else None

    def show_cards(self, columns: Sequence[Sequence[Card]], lead: str | None) -> None:
        """Show these; the cursor stays on its card, or while it follows on ``lead``."""
        before = self.key
        self.columns = columns
        wanted = lead if self.following else before
        self.at = self._find(wanted) or self._find(before) or self._first()
        self.set_rows(range(n_lines(columns)), self._row)  # type: ignore[arg-type]
        if self.key != before:
            self._show_card()
            self._tell_moved()

    def _find(self, card: str | None) -> tuple[int, int] | None:
        return next(((x, y) for x, cards in enumerate(self.columns) for y, c in enumerate(cards) if c.id == card), None)

    def _first(self) -> tuple[int, int]:
        """The top card of the highest rung that has one."""
        return max(((x, 0) for x, cards in enumerate(self.columns) if cards), default=(0, 0))

    def _row(self, y: int, _width: int) -> Content:
        cell = cell_width(self.size.width, len(self.columns))
        parts = [self._cell(x, y // CARD_LINES, y % CARD_LINES, cell) for x in range(len(self.columns))]
        return Content.assemble(*parts)

    def _cell(self, x: int, row: int, part: int, cell: int) -> Content:
        cards = self.columns[x]
        if row >= len(cards):
            return Content(" " * cell)
        here = (x, row) == self.at
        drawn: Line = card_lines(cards[row], cell, here, self.glyphs)[part]
        content = paint(drawn, self.glyphs.ascii_only)
        if not here:
            return content
        if self.app.native_ansi_color:
            return content.stylize("reverse bold" if self.has_focus else "reverse")
        return content.stylize_before("on $primary 35%" if self.has_focus else "on $foreground 9%")

    def _put(self, x: int, y: int) -> None:
        self.following = False
        before = self.key
        self.at = (x, y)
        self._show_card()
        self._repaint()
        if self.key != before:
            self._tell_moved()

    def _show_card(self) -> None:
        top, height, first = self.scroll_offset.y, self.size.height, self.at[1] * CARD_LINES
        if first < top:
            self.scroll_to(y=first, animate=False, immediate=True)
        elif first + CARD_LINES > top + height > 0:
            self.scroll_to(y=first + CARD_LINES - height, animate=False, immediate=True)

    def action_step(self, by: int) -> None:
        x, y = self.at
        cards = self.columns[x] if x < len(self.columns) else ()
        self._put(x, min(max(y + by, 0), max(len(cards) - 1, 0)))

    def action_page(self, by: int) -> None:
        self.action_step(by * max(self.size.height // CARD_LINES - 1, 1))

    def action_aside(self, by: int) -> None:
        """To the next column on that side that has a card."""
        x = self.at[0] + by
        while 0 <= x < len(self.columns):
            if self.columns[x]:
                self._put(x, min(self.at[1], len(self.columns[x]) - 1))
                return
            x += by

    def action_top(self) -> None:
        self._put(self.at[0], 0)
        self.following = True

    def action_bottom(self) -> None:
        self._put(self.at[0], max(len(self.columns[self.at[0]]) - 1, 0) if self.columns else 0)

    def move_to_key(self, key: str) -> bool:
        found = self._find(key)
        if found is not None:
            self._put(*found)
        return found is not None

    async def on_click(self, event: events.Click) -> None:
        cell = cell_width(self.size.width, len(self.columns))
        x, y = int(event.x) // max(cell, 1), (int(event.y) + self.scroll_offset.y) // CARD_LINES
        if x < len(self.columns) and y < len(self.columns[x]):
            again = self.at == (x, y)
            self._put(x, y)
            if event.chain == 2 or (again and event.chain > 1):
                self.post_message(self.Chosen(self, self.columns[x][y].id))
