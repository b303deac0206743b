"""The tree of candidates."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from kbtui.tui.glyphs import Glyphs
from kbtui.tui.look import Look
from kbtui.tui.moment import Moment
from kbtui.tui.view.lineage import Lineage, empty_lineage, lineage_line, lineage_of
from kbtui.tui.widgets.line_list import LineList
from kbtui.tui.widgets.titles import set_titles


class LineagePane(LineList):
    """Each candidate under the one it was made from, with its speed as a number and a colour."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "relative(-1)", "Parent", show=False),
        Binding("right", "relative(1)", "First child", show=False),
    ]

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(cursor=True, glyphs=glyphs, id="lineage", classes="pane")
        self.lineage = Lineage((), {})

    def show_moment(self, moment: Moment, look: Look) -> None:
        self.lineage = lineage = lineage_of(moment, look.query, look.only_bests, self.glyphs)
        if lineage.nodes:
            keys = [n.id for n in lineage.nodes]
            self.set_rows(keys, lambda i, w: lineage_line(moment, lineage, i, w, self.glyphs), look.selected)
        else:
            lines = empty_lineage(max(self.size.width - 4, 20), look.query, look.only_bests)
            self.set_rows([""] * len(lines), lambda i, _w: lines[i])
        only = ", only what led to a best" if look.only_bests else ""
        shown = f"{len(lineage.nodes)} of {len(moment.state.tried)}" if look.query or look.only_bests else ""
        set_titles(self, f"6 Lineage{only}", shown or f"{len(lineage.nodes)} candidates", self.glyphs.ascii_only)

    def action_relative(self, by: int) -> None:
        """To the parent, or to the first child."""
        here = self.lineage.nodes[self.cursor] if self.cursor < len(self.lineage.nodes) else None
        if here is None:
            return
        target = here.parent if by < 0 else self.lineage.first_child.get(here.id)
        if target is not None:
            self.move_to_key(target)
