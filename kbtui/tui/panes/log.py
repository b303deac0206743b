"""Every event of the run."""

from kbtui.domain.wording import counted
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.look import Look
from kbtui.tui.moment import Moment
from kbtui.tui.view.log import empty_log, log_line, said
from kbtui.tui.widgets.line_list import LineList
from kbtui.tui.widgets.titles import set_titles


class LogPane(LineList):
    """Newest first, in the words of the ledger."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(cursor=True, glyphs=glyphs, id="log", classes="pane")

    def show_moment(self, moment: Moment, look: Look) -> None:
        words = look.query.lower().split()
        events = list(reversed(moment.journal))
        if words:
            events = [e for e in events if all(word in said(moment, e).lower() for word in words)]
        if events:
            self.set_rows([str(e.seq) for e in events], lambda i, _w: log_line(moment, events[i], self.glyphs))
        else:
            lines = empty_log(max(self.size.width - 4, 20), look.query)
            self.set_rows([""] * len(lines), lambda i, _w: lines[i])
        set_titles(self, "8 Log, newest first", counted(len(events), "event"), ascii_only=self.glyphs.ascii_only)
