"""A scrolling list that draws only the lines in view and repaints only those that changed.

DataTable holds every cell and paints 20,000 rows in seconds; this one asks for a line when it is looked at.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.style import Style
from textual.visual import Visual

from kbtui.tui.glyphs import UNICODE, Glyphs
from kbtui.tui.text import Line, Role, clip
from kbtui.tui.widgets.paint import paint

Drawn = Line | Content
Draw = Callable[[int, int], Drawn]


class LineList(ScrollView, can_focus=True):
    """Rows have keys; the cursor stays on its key when rows move, and follows the top until it is moved.

    ``draw(index, width)`` gives a row's line. Without a cursor the arrows scroll. ``at_once`` is called
    with the cursor's step, for what the next key or the next picture must know: ``Moved`` is heard after both.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"line-list--cursor", "line-list--cursor-blurred"}
    DEFAULT_CSS = """
    LineList {
        background: transparent; text-wrap: nowrap;
        scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0; scrollbar-gutter: stable;
    }
    LineList > .line-list--cursor { background: $primary 35%; text-style: bold; }
    LineList > .line-list--cursor-blurred { background: $foreground 7%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "step(-1)", "Up", show=False),
        Binding("down,j", "step(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home,g", "top", "Top", show=False),
        Binding("end,G,shift+g", "bottom", "End", show=False),
    ]

    class Moved(Message):
        """The cursor is on another key."""

        def __init__(self, lines: "LineList", key: str | None) -> None:
            super().__init__()
            self.lines, self.key = lines, key

        @property
        def control(self) -> "LineList":
            return self.lines

    class Chosen(Message):
        """A row was clicked twice, or its cursor row was clicked."""

        def __init__(self, lines: "LineList", key: str) -> None:
            super().__init__()
            self.lines, self.key = lines, key

        @property
        def control(self) -> "LineList":
            return self.lines

    def __init__(
        self,
        *,
        cursor: bool = False,
        glyphs: Glyphs = UNICODE,
        id: str | None = None,  # noqa: A002
        classes: str = "",
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.glyphs = glyphs
        self.with_cursor = cursor
        self.cursor = 0
        self.following = True
        self.at_once: Callable[[], None] = _nothing
        self._keys: Sequence[str] = ()
        self._draw: Draw = lambda _i, _w: ()
        self._lines: dict[int, Drawn] = {}
        self._sized_for = 0

    @property
    def key(self) -> str | None:
        """The key under the cursor."""
        return self._keys[self.cursor] if self.with_cursor and self.cursor < len(self._keys) else None

    @property
    def n_rows(self) -> int:
        return len(self._keys)

    def set_rows(self, keys: Sequence[str], draw: Draw, lead: str | None = None) -> None:
        """Show these rows; the cursor stays on its key, or while it follows on ``lead``, the top row for None."""
        before = self.key
        self._keys, self._draw = keys, draw
        if self._sized_for != len(keys):
            self._sized_for = len(keys)
            self.virtual_size = Size(self.scrollable_content_region.width, len(keys))
        self._restore(before, lead)
        self._repaint()

    def _restore(self, before: str | None, lead: str | None) -> None:
        if not self.with_cursor:
            return
        wanted = lead if self.following else before
        if wanted is not None and wanted in self._keys:
            self._place(self._keys.index(wanted))
            if self.following and self.size.height > 0:
                self._show_cursor()
        else:
            self._place(0 if self.following else min(self.cursor, max(len(self._keys) - 1, 0)))
        if self.key != before:
            self._tell_moved()

    def _tell_moved(self) -> None:
        self.at_once()
        self.post_message(self.Moved(self, self.key))

    def _place(self, index: int) -> None:
        moved_by = index - self.cursor
        self.cursor = index
        if moved_by and not self.following and self.scroll_offset.y > 0:
            self.scroll_relative(y=moved_by, animate=False, immediate=True)

    def _repaint(self) -> None:
        """Refresh the rows in view whose line is not what was painted last."""
        top, height, width = self.scroll_offset.y, self.size.height, self._row_width
        seen: dict[int, Drawn] = {}
        for y in range(top, top + height):
            new = self._line(y, width)
            seen[y] = new
            if not _same(self._lines.get(y), new):
                self.refresh_line(y)
        self._lines = seen

    @property
    def _row_width(self) -> int:
        return max(self.scrollable_content_region.width - (2 if self.with_cursor else 0), 1)

    def _line(self, y: int, width: int) -> Drawn:
        if y >= len(self._keys):
            return ()
        drawn = self._draw(y, width)
        if self.with_cursor and isinstance(drawn, tuple):
            prefix = (f"{self.glyphs.cursor} " if y == self.cursor else "  ", Role.ACCENT)
            return (prefix, *clip(drawn, width, self.glyphs.ellipsis))
        return clip(drawn, width, self.glyphs.ellipsis) if isinstance(drawn, tuple) else drawn

    def render_line(self, y: int) -> Strip:
        index = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        if index not in self._lines:
            self._lines[index] = self._line(index, self._row_width)
        drawn = self._lines[index]
        content = drawn if isinstance(drawn, Content) else paint(drawn, self.glyphs.ascii_only)
        style = self.visual_style
        if self.with_cursor and index == self.cursor and index < len(self._keys):
            style = self._cursor_style()
        strips = Visual.to_strips(self, content, width, 1, style, pad=True)
        strip = strips[0] if strips else Strip.blank(width, style.rich_style)
        return strip.adjust_cell_length(width, style.rich_style)

    def _cursor_style(self) -> Style:
        """The cursor's row; where the terminal has sixteen colours they are turned round, since none is a shade."""
        if self.app.native_ansi_color:
            return self.visual_style + Style(reverse=self.has_focus, bold=True)
        return self.get_visual_style("line-list--cursor" if self.has_focus else "line-list--cursor-blurred")

    def action_step(self, by: int) -> None:
        if self.with_cursor:
            self.move_to(self.cursor + by)
        else:
            self.scroll_relative(y=by, animate=False)

    def action_page(self, by: int) -> None:
        self.action_step(by * max(self.size.height - 1, 1))

    def action_top(self) -> None:
        if self.with_cursor:
            self.move_to(0)
            self.following = True
        else:
            self.scroll_home(animate=False)

    def action_bottom(self) -> None:
        if self.with_cursor:
            self.move_to(len(self._keys) - 1)
        else:
            self.scroll_end(animate=False)

    def move_to(self, index: int) -> None:
        """Put the cursor on a row and bring it into view; it no longer follows the top."""
        index = min(max(index, 0), max(len(self._keys) - 1, 0))
        self.following = False
        if index != self.cursor:
            self.cursor = index
            self._show_cursor()
            self._repaint()
            self._tell_moved()

    def move_to_key(self, key: str) -> bool:
        """Put the cursor on a key; False where it is not listed."""
        if key not in self._keys:
            return False
        self.move_to(self._keys.index(key))
        return True

    def _show_cursor(self) -> None:
        top, height = self.scroll_offset.y, self.size.height
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False, immediate=True)
        elif self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False, immediate=True)

    def on_resize(self, _event: events.Resize) -> None:
        self._lines.clear()
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._keys))
        self.refresh()
        self.resized()

    def resized(self) -> None:
        """For widgets whose rows depend on their width."""

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        self._lines.clear()
        super().watch_scroll_y(old_value, new_value)

    def watch_has_focus(self, focused: bool) -> None:
        super().watch_has_focus(focused)
        self.refresh()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._lines.clear()

    async def on_click(self, event: events.Click) -> None:
        index = int(event.y) + self.scroll_offset.y
        if not self.with_cursor or index >= len(self._keys):
            return
        again = index == self.cursor
        self.move_to(index)
        if event.chain == 2 or (again and event.chain > 1):
            self.post_message(self.Chosen(self, self._keys[index]))


def _nothing() -> None:
    """Where nothing goes with the cursor."""


def _same(old: Drawn | None, new: Drawn) -> bool:
    if old is None and new == ():
        return True
    if isinstance(new, Content):
        return isinstance(old, Content) and old.is_same(new)
    return old == new
