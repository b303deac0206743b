"""What bounds the kernel under the cursor."""

from kbtui.tui.glyphs import Glyphs
from kbtui.tui.look import Look
from kbtui.tui.moment import Moment
from kbtui.tui.view.bottleneck import bottleneck_lines, bottleneck_title, bottleneck_view
from kbtui.tui.widgets.lines import Lines
from kbtui.tui.widgets.titles import set_titles


class BottleneckPane(Lines):
    """The sentence, speed of light, stalls, occupancy, roofline, and the hints it led to."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(glyphs=glyphs, focusable=True, id="bottleneck", classes="pane")

    def show_moment(self, moment: Moment, look: Look) -> None:
        view = bottleneck_view(moment, look.selected, self.glyphs)
        set_titles(self, f"3 {bottleneck_title(view)}", ascii_only=self.glyphs.ascii_only)
        self.show(lambda w, h: bottleneck_lines(view, w, self.glyphs, h))
