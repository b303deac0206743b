"""The tab line where one pane is shown at a time."""

from textual.content import Content
from textual.widgets import Static

NAMES = ("Rungs", "Live", "Bottleneck", "Diff", "History", "Lineage", "Compare", "Log")
#: Where the whole names do not fit.
SHORT = ("Rungs", "Live", "Bottl", "Diff", "Hist", "Tree", "Comp", "Log")
_WHOLE_FROM = 80
#: From here on there is a blank behind each name too.
_APART_FROM = 66


class TabLine(Static):
    """Keys 1 to 8 and clicks choose; the chosen one is between brackets too, for where there is no colour."""

    DEFAULT_CSS = """
    TabLine {
        height: 1; text-wrap: nowrap;
        link-style: none; link-style-hover: underline; link-background-hover: $background;
        link-color: $foreground; link-color-hover: $text-accent;
    }
    """

    def __init__(self, id: str) -> None:  # noqa: A002
        super().__init__(id=id)
        self.chosen = 1

    def choose(self, number: int) -> None:
        if number != self.chosen:
            self.chosen = number
            self.refresh()

    def render(self) -> Content:
        names = NAMES if self.size.width >= _WHOLE_FROM else SHORT
        return Content("").join(self._tab(n, name) for n, name in enumerate(names, start=1))

    def _tab(self, number: int, name: str) -> Content:
        apart = " " if self.size.width >= _APART_FROM else ""
        if number == self.chosen:
            before = "" if apart or number == 1 else " "
            return Content.assemble(before, (f"[{number} {name}]", "bold reverse $text-primary"))
        label = Content.from_markup(f"[@click=screen.pane({number})]$name[/]", name=name)
        return Content.assemble(" ", (str(number), "bold $text-accent"), " ", label, apart)
