"""A pane whose lines are made for its size, and made again when either the size or the view changes."""

from collections.abc import Callable

from kbtui.tui.glyphs import Glyphs
from kbtui.tui.text import Line
from kbtui.tui.widgets.line_list import LineList

Build = Callable[[int, int], list[Line]]


class Lines(LineList):
    """Shows what ``build(width, height)`` returns; it scrolls only where it can have the focus."""

    DEFAULT_CSS = "Lines.-fixed { overflow: hidden; scrollbar-gutter: auto; }"

    def __init__(self, *, glyphs: Glyphs, focusable: bool = False, id: str | None = None, classes: str = "") -> None:  # noqa: A002
        super().__init__(cursor=False, glyphs=glyphs, id=id, classes=classes)
        self.can_focus = focusable
        self.set_class(not focusable, "-fixed")
        self._build: Build = lambda _w, _h: []

    def show(self, build: Build) -> None:
        self._build = build
        self._make()

    def _make(self) -> None:
        size = self.scrollable_content_region
        if size.width <= 0:
            return
        lines = self._build(size.width, self.size.height)
        self.set_rows(range(len(lines)), lambda i, _w: lines[i])  # type: ignore[arg-type]

    def resized(self) -> None:
        self._make()
