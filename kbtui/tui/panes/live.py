"""The live benchmarks."""

from kbtui.tui.glyphs import Glyphs
from kbtui.tui.look import Look
from kbtui.tui.moment import Moment
from kbtui.tui.view.live import live_lines, live_title, live_view
from kbtui.tui.widgets.lines import Lines
from kbtui.tui.widgets.titles import set_titles


class LivePane(Lines):
    """Samples against the incumbent, and how the best has moved."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(glyphs=glyphs, focusable=True, id="live", classes="pane")

    def show_moment(self, moment: Moment, look: Look) -> None:
        view, by_gpu = live_view(moment), look.by_gpu
        set_titles(self, f"2 {live_title(view)}", ascii_only=self.glyphs.ascii_only)
        self.show(lambda w, h: live_lines(view, w, h, self.glyphs, by_gpu))
