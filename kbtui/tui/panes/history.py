"""Every candidate as a table."""

from textual.app import ComposeResult
from textual.containers import Vertical

from kbtui.domain.wording import counted
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.look import Look
from kbtui.tui.moment import Moment
from kbtui.tui.view.history import empty_history, head_line, history_keys, history_line
from kbtui.tui.widgets.line_list import LineList
from kbtui.tui.widgets.lines import Lines
from kbtui.tui.widgets.titles import set_titles

#: Cells the rows keep for their cursor and the scrollbar.
_ROW_MARGIN = 3


class HistoryPane(Vertical):
    """Filter, order, and only what was a best; what failed comes last unless the order is by age."""

    DEFAULT_CSS = """
    HistoryPane #history-head { height: 1; }
    HistoryPane #no-history { height: 1fr; display: none; }
    HistoryPane.empty #history-head, HistoryPane.empty #history-list { display: none; }
    HistoryPane.empty #no-history { display: block; }
    """

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(id="history", classes="pane")
        self.g = glyphs

    def compose(self) -> ComposeResult:
        yield Lines(glyphs=self.g, id="history-head")
        yield LineList(cursor=True, glyphs=self.g, id="history-list")
        yield Lines(glyphs=self.g, id="no-history")

    def show_moment(self, moment: Moment, look: Look) -> None:
        keys = history_keys(moment, look.query, look.order, look.only_bests)
        self.query_one("#history-head", Lines).show(lambda w, _h: [head_line(w - _ROW_MARGIN)])
        self.query_one("#history-list", LineList).set_rows(keys, lambda i, w: history_line(moment, keys[i], w, self.g))
        self.set_class(not keys, "empty")
        self.query_one("#no-history", Lines).show(lambda w, _h: empty_history(w, look.query, look.only_bests))
        read = f" of the {len(moment.state.tried):,} read" if moment.from_seq else ""
        count = f"/{look.query}: {len(keys)}{read}" if look.query else counted(len(keys), "candidate")
        only = ", only bests" if look.only_bests else ""
        set_titles(self, f"5 History, {look.order.value}{only}", count, ascii_only=self.g.ascii_only)
