"""Two candidates of one run side by side."""

from kbtui.tui.glyphs import Glyphs
from kbtui.tui.look import Look
from kbtui.tui.moment import Moment
from kbtui.tui.view.base import pair_of
from kbtui.tui.view.compare import compare_lines
from kbtui.tui.widgets.lines import Lines
from kbtui.tui.widgets.titles import set_titles


class ComparePane(Lines):
    """The candidate under the cursor beside the parent, the champion, the first kernel or the mark."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(glyphs=glyphs, focusable=True, id="compare", classes="pane")

    def show_moment(self, moment: Moment, look: Look) -> None:
        pair = pair_of(moment, look.selected, look.base, look.marked)
        self.show(lambda w, _h: compare_lines(moment, pair, w, self.glyphs))
        about = f": {pair.left} and {pair.right}" if not pair.missing else ""
        set_titles(self, f"7 Compare{about}", "d: with another", ascii_only=self.glyphs.ascii_only)
