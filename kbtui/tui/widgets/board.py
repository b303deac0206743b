"""The rung queue: the ladder's columns, the cards, and why the card under the cursor is where it is."""

from textual.app import ComposeResult
from textual.containers import Vertical

from kbtui.tui.glyphs import Glyphs
from kbtui.tui.look import Look
from kbtui.tui.moment import Moment
from kbtui.tui.view.board import board_view, card_line, cell_width, column_lines, empty_board, why_lines
from kbtui.tui.view.kanban import NARROWEST_CELL, columns_of, leader_of
from kbtui.tui.widgets.kanban import Kanban
from kbtui.tui.widgets.line_list import LineList
from kbtui.tui.widgets.lines import Lines
from kbtui.tui.widgets.titles import set_titles

#: A board column this wide says more than a list; below it the list is the default.
_BOARD_FROM_CELL = 17


class Board(Vertical):
    """Its cursor is the one that the bottleneck and the diff follow, on a list or on a board with a column a rung."""

    DEFAULT_CSS = """
    Board #columns { height: 7; }
    Board.low #columns { height: 4; }
    Board.low.board #columns { height: 3; }
    Board.rows #columns { height: 7; }
    Board #cards, Board #kanban { height: 1fr; }
    Board #kanban { display: none; }
    Board.board #kanban { display: block; }
    Board.board #cards { display: none; }
    Board #no-cards { height: 1fr; display: none; }
    Board #why { height: 2; }
    Board.empty #cards, Board.empty #kanban, Board.empty #why { display: none; }
    Board.empty #no-cards { display: block; }
    """

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(id="rungs", classes="pane")
        self.g = glyphs
        self._lead: str | None = None
        self._led_ended = False

    def compose(self) -> ComposeResult:
        yield Lines(glyphs=self.g, id="columns")
        yield LineList(cursor=True, glyphs=self.g, id="cards")
        yield Kanban(self.g, id="kanban")
        yield Lines(glyphs=self.g, id="no-cards")
        yield Lines(glyphs=self.g, id="why")

    @property
    def cards(self) -> LineList:
        """What has the cursor now: the list, or the board."""
        return self.query_one("#kanban" if self.has_class("board") else "#cards", LineList)

    @property
    def fits_board(self) -> bool:
        """Whether a card's state can be read in a column of this pane."""
        return cell_width(self.content_size.width, 5) >= NARROWEST_CELL

    def show_moment(self, moment: Moment, look: Look) -> None:
        view = board_view(moment, self.g, look.query, look.marked)
        room = self.content_size.height
        self._choose(look)
        columns = self.query_one("#columns", Lines)
        self.set_class(room < 16, "low")
        columns.show(lambda w, _h: column_lines(view.columns, w, room, self.g))
        self.set_class(not view.cards, "empty")
        self.query_one("#no-cards", Lines).show(lambda w, _h: empty_board(w, look.query))
        self._lead_on(moment)
        if self.has_class("board"):
            self.query_one(Kanban).show_cards(columns_of(view), self._lead)
        else:
            keys = [c.id for c in view.cards]
            self.cards.set_rows(keys, lambda i, w: card_line(view.cards[i], w, self.g), self._lead)
        shown = f"{len(view.cards)} shown" if look.query or view.n_hidden else f"{len(view.cards)} candidates"
        set_titles(self, "1 Rungs", f"/{look.query}: {shown}" if look.query else shown, self.g.ascii_only)
        self.show_why(moment)

    def _lead_on(self, moment: Moment) -> None:
        """Between two evaluations the cursor stays where it was led; it leaves an old champion when a run goes on."""
        leader, ended = leader_of(moment), moment.state.ended is not None
        if leader is not None or ended is not self._led_ended:
            self._lead = leader
        self._led_ended = ended

    def _choose(self, look: Look) -> None:
        """List or board; the cursor and the focus go over from one to the other."""
        wide = cell_width(self.content_size.width, 5) >= _BOARD_FROM_CELL
        wanted = (wide if look.board is None else look.board) and self.fits_board
        if wanted == self.has_class("board"):
            return
        before, focused = self.cards, self.cards.has_focus
        self.set_class(wanted, "board")
        after = self.cards
        after.following = before.following
        if before.key is not None and not before.following:
            after.move_to_key(before.key)
        if focused:
            after.focus()

    def show_why(self, moment: Moment) -> None:
        selected = self.cards.key
        self.query_one("#why", Lines).show(lambda w, h: why_lines(moment, selected, w, self.g, h))
