"""The looking keys of a run's screen: what is marked, ordered, filtered, compared."""

from typing import TYPE_CHECKING

from kbtui.tui.screens.typing import viewer
from kbtui.tui.view.base import Base, next_base, pair_of
from kbtui.tui.view.history import Order
from kbtui.tui.widgets.board import Board
from kbtui.tui.widgets.diff import DiffPane

if TYPE_CHECKING:
    from kbtui.tui.screens.dashboard import Dashboard

_BASE_WORDS = {
    Base.PARENT: "its parent",
    Base.CHAMPION: "the champion",
    Base.FIRST: "the first kernel",
    Base.MARKED: "the marked one",
}


class Looking:
    """Acts for one dashboard. Each method answers one key of the table; what it cannot do it says."""

    def __init__(self, dashboard: "Dashboard") -> None:
        self.dashboard = dashboard
        self.look = dashboard.look
        self._copying: tuple[str, str] | None = None

    def do(self, name: str) -> None:
        """Act on a key by its id in the table."""
        match name:
            case "next_change" | "previous_change":
                self.change(1 if name == "next_change" else -1)
            case "open":
                self.open()
            case "diff_base":
                self.next_base()
            case "mark":
                self.mark()
            case "compare":
                self.compare()
            case "unified":
                self.unified()
            case "axis":
                self.axis()
            case "order":
                self.order()
            case "bests":
                self.bests()
            case "board":
                self.board()
            case "filter":
                self.dashboard.open_filter()
            case "freeze":
                self.freeze()
            case "copy":
                self.copy()

    def say(self, words: str) -> None:
        viewer(self.dashboard).say(words)

    def open(self) -> None:
        moment = viewer(self.dashboard).moment
        if self.look.selected is None or moment is None or self.look.selected not in moment.state.tried:
            return self.say("no candidate under the cursor to open; choose one with the arrows in 1, 5 or 6")
        from kbtui.tui.screens.detail import Detail

        self.dashboard.app.push_screen(Detail(self.dashboard.g, self.look.selected))
        return None

    def next_base(self) -> None:
        moment, look = viewer(self.dashboard).moment, self.look
        if moment is None or look.selected is None:
            return self.say("no candidate under the cursor to compare; choose one with the arrows in 1, 5 or 6")
        for _ in Base:
            look.base = next_base(look.base)
            if not pair_of(moment, look.selected, look.base, look.marked).missing:
                break
        self.say(f"compared with {_BASE_WORDS[look.base]}")
        if not self.dashboard.seen("diff") and not self.dashboard.seen("compare"):
            self.dashboard.action_pane(4)
        self.dashboard.show_selected()
        return None

    def mark(self) -> None:
        if self.look.selected is None:
            return self.say("no candidate under the cursor to mark; choose one with the arrows in 1, 5 or 6")
        self.look.marked = None if self.look.marked == self.look.selected else self.look.selected
        self.say(
            f"{self.look.selected} is marked; move to another, c compares the two"
            if self.look.marked
            else "the mark is gone"
        )
        self.dashboard.show()
        return None

    def compare(self) -> None:
        """The comparison pane, with the mark where there is one that is not the candidate itself."""
        if self.look.marked is not None and self.look.marked != self.look.selected:
            self.look.base = Base.MARKED
        self.dashboard.action_pane(7)

    def change(self, by: int) -> None:
        if not self.dashboard.seen("diff"):
            return self.say("the diff is not on the screen; 4 shows it")
        refused = self.dashboard.query_one(DiffPane).go(by)
        if refused:
            self.say(refused)
        self.dashboard.show_selected()
        return None

    def unified(self) -> None:
        if not self.dashboard.seen("diff"):
            return self.say("the diff is not on the screen; 4 shows it")
        refused = self.dashboard.query_one(DiffPane).toggle_unified()
        return self.say(refused) if refused else None

    def axis(self) -> None:
        moment = viewer(self.dashboard).moment
        if not self.dashboard.seen("live"):
            return self.say("the curve is not on the screen; 2 shows it")
        if moment is not None and moment.gpu_s <= 0:
            return self.say("no GPU time was spent on this device; the curve is over wall time")
        self.look.by_gpu = not self.look.by_gpu
        self.dashboard.show()
        return None

    def order(self) -> None:
        if not self.dashboard.seen("history"):
            return self.say("o orders the history; 5 shows it")
        orders = list(Order)
        self.look.order = orders[(orders.index(self.look.order) + 1) % len(orders)]
        self.dashboard.show()
        return None

    def bests(self) -> None:
        if not (self.dashboard.seen("history") or self.dashboard.seen("lineage")):
            return self.say("i is for the history (5) and the lineage (6)")
        self.look.only_bests = not self.look.only_bests
        self.say("only what was a best once; i shows all again" if self.look.only_bests else "every candidate again")
        self.dashboard.show()
        return None

    def board(self) -> None:
        board = self.dashboard.query_one(Board)
        if not self.dashboard.seen("rungs"):
            return self.say("the cards are not on the screen; 1 shows them")
        if not board.fits_board and not board.has_class("board"):
            return self.say("the pane is too narrow for a board; f gives it the whole screen")
        self.look.board = not board.has_class("board")
        self.dashboard.show()
        return None

    def freeze(self) -> None:
        app = viewer(self.dashboard)
        app.frozen = not app.frozen
        held = "the screen is held still; the search goes on, space follows it again"
        self.say(held if app.frozen else "following again")
        self.dashboard.show()
        app.tick()

    def copy(self) -> None:
        app = viewer(self.dashboard)
        tried = app.moment.state.tried.get(self.look.selected or "") if app.moment else None
        if tried is None:
            return self.say("no candidate under the cursor to copy; choose one with the arrows in 1, 5 or 6")
        self._copying = (tried.candidate.id, tried.commit)
        text = app.feed.text(tried.commit)
        if text is not None:
            self.text_arrived(tried.commit, text)
        return None

    def text_arrived(self, key: str, text: str) -> None:
        """A source is there that ``y`` may wait for."""
        if self._copying is not None and self._copying[1] == key:
            viewer(self.dashboard).copy_source(self._copying[0], text)
            self._copying = None

    def text_missing(self, key: str) -> None:
        """It cannot be read: a later reading of it must not write a file."""
        if self._copying is not None and self._copying[1] == key:
            self._copying = None
