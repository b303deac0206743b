"""The rung queue: the ladder's columns, the cards, and why the card under the cursor is where it is."""

from textual.app import ComposeResult
from textual.containers import Vertical

from kbtui.tui.glyphs import Glyphs
from kbtui.tui.moment import Moment
from kbtui.tui.view.board import board_view, card_line, column_lines, empty_board, why_lines
from kbtui.tui.widgets.line_list import LineList
from kbtui.tui.widgets.lines import Lines
from kbtui.tui.widgets.titles import set_titles


class Board(Vertical):
    """Its list has the cursor that the bottleneck and the diff follow."""

    DEFAULT_CSS = """
    Board #columns { height: 7; }
    Board.low #columns { height: 4; }
    Board #cards { height: 1fr; }
    Board #no-cards { height: 1fr; display: none; }
    Board #why { height: 2; }
    Board.empty #cards, Board.empty #why { display: none; }
    Board.empty #no-cards { display: block; }
    """

    def __init__(self, glyphs: Glyphs, id: str, classes: str) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self.g = glyphs

    def compose(self) -> ComposeResult:
        yield Lines(glyphs=self.g, id="columns")
        yield LineList(cursor=True, glyphs=self.g, id="cards")
        yield Lines(glyphs=self.g, id="no-cards")
        yield Lines(glyphs=self.g, id="why")

    @property
    def cards(self) -> LineList:
        return self.query_one("#cards", LineList)

    def show(self, moment: Moment, query: str, marked: str | None) -> None:
        view = board_view(moment, self.g, query, marked)
        room = self.size.height
        columns = self.query_one("#columns", Lines)
        self.set_class(room < 16, "low")
        columns.show(lambda w, _h: column_lines(view.columns, w, room, self.g))
        self.set_class(not view.cards, "empty")
        self.query_one("#no-cards", Lines).show(lambda w, _h: empty_board(w, query))
        self.cards.set_rows([c.id for c in view.cards], lambda i, w: card_line(view.cards[i], w, self.g))
        shown = f"{len(view.cards)} shown" if query or view.n_hidden else f"{len(view.cards)} candidates"
        set_titles(self, "1 Rungs", f"/{query}: {shown}" if query else shown)
        self.show_why(moment)

    def show_why(self, moment: Moment) -> None:
        selected = self.cards.key
        self.query_one("#why", Lines).show(lambda w, h: why_lines(moment, selected, w, self.g, h))
