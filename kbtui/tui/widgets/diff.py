"""Two kernels side by side, or one above the other where it is narrow, with syntax colours and changed words."""

from collections.abc import Callable, Sequence

from textual.content import Content
from textual.highlight import HighlightTheme, highlight

from kbtui.domain.wording import counted
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.safe import shown
from kbtui.tui.text import Role, line, wrap
from kbtui.tui.view.base import Pair
from kbtui.tui.view.diff import Cell, Change, Diff, ScreenRow, diff_sources, layout, row_of_change
from kbtui.tui.widgets.line_list import LineList
from kbtui.tui.widgets.paint import paint, to_ascii
from kbtui.tui.widgets.titles import set_titles

_GUTTER = 6
_SIDE_BY_SIDE_FROM = 64
_SIGNS = {Change.SAME: " ", Change.CHANGED: "~", Change.ADDED: "+", Change.REMOVED: "-"}
_LEFT, _RIGHT = "$error", "$success"


class CodeTheme(HighlightTheme):
    """Quieter than Textual's: code is read for hours, so only keywords, numbers, strings and comments stand out."""

    STYLES = {  # noqa: RUF012
        **HighlightTheme.STYLES,
        **{k: v.replace(" underline", "") for k, v in HighlightTheme.STYLES.items()},
    }


class DiffPane(LineList):
    """Opens at the first change; ``go`` moves between changes."""

    def __init__(self, glyphs: Glyphs, number: int = 4) -> None:
        super().__init__(cursor=False, glyphs=glyphs, id="diff", classes="pane")
        self.number = number
        self.diff: Diff | None = None
        self.side_by_side: bool | None = None
        self.whole = False
        self.change = 0
        self._sources: tuple[str, str] = ("", "")
        self._missing = ""
        self._code: tuple[list[Content], list[Content]] = ([], [])
        self._rows: Sequence[ScreenRow] = ()

    def show(self, pair: Pair, text: Callable[[str], str | None], narrow: bool) -> None:
        """Show a pair whose sources ``text`` gives by commit, as soon as it has both."""
        if pair.missing:
            self.show_missing(pair.missing)
            set_titles(self, f"{self.number} Diff", "d: with another")
            return
        left, right = text(pair.left_commit), text(pair.right_commit)
        if left is not None and right is not None:
            self.show_pair(shown(left), shown(right))
        place = f"  ({self.place})" if narrow and self.place else ""
        title = f"{self.number} {pair.title.replace('{arrow}', self.glyphs.arrow)}{place}"
        set_titles(self, title, self.place, self.glyphs.ascii_only)

    def show_pair(self, left: str, right: str) -> None:
        """Show the change from one source to another; the same pair again keeps its place."""
        self._missing = ""
        if (left, right) != self._sources or self.diff is None:
            self._sources = (left, right)
            self.diff = diff_sources(left, right)
            self._code = (coloured(left), coloured(right))
            self.change = 0
            self._lay_out()

    def show_missing(self, why: str) -> None:
        """Nothing to compare: say what would appear here."""
        if self._missing == why:
            return
        self._missing, self.diff, self._sources = why, None, ("", "")
        self._lay_out()

    def go(self, by: int) -> str | None:
        """Move to the next or previous change; why not, where there is none."""
        if self.diff is None or not self.diff.changes:
            return "nothing changed between these two" if self.diff else "no diff is shown"
        wanted = self.change + by
        if not 0 <= wanted < len(self.diff.changes):
            return "this is the last change" if by > 0 else "this is the first change"
        self.change = wanted
        self._to_change()
        return None

    def toggle_unified(self) -> str | None:
        """Side by side or unified; why not, where there is no diff."""
        if self.diff is None:
            return "no diff is shown"
        self.side_by_side = not self._beside
        self._lay_out()
        return None

    def set_whole(self, whole: bool) -> None:
        """Show unchanged lines too."""
        if self.whole != whole:
            self.whole = whole
            self._lay_out()

    @property
    def _beside(self) -> bool:
        wide = self.scrollable_content_region.width >= _SIDE_BY_SIDE_FROM and self.app.size.width >= 100
        return wide if self.side_by_side is None else self.side_by_side

    @property
    def place(self) -> str:
        """Which change is looked at, of how many."""
        n = len(self.diff.changes) if self.diff else 0
        return f"change {self.change + 1} of {n}" if n else "no change" if self.diff else ""

    def _lay_out(self) -> None:
        width = self.scrollable_content_region.width
        if width <= 0:
            return
        if self.diff is None:
            lines = wrap(self._missing, width, Role.DIM)
            self.set_rows([str(i) for i in range(len(lines))], lambda i, _w: lines[i])
            return
        code_width = (width - 1) // 2 - _GUTTER if self._beside else width - _GUTTER
        self._rows = layout(self.diff, code_width, self._beside, None if self.whole else 3)
        if not self.diff.changes:
            self._rows = layout(self.diff, code_width, self._beside, None)
        self._lines.clear()
        self.set_rows([str(i) for i in range(len(self._rows))], self._draw_row)
        self.refresh()
        self.call_after_refresh(self._to_change)

    def _to_change(self) -> None:
        if self.diff is not None and self.diff.changes:
            target = max(row_of_change(self._rows, self.change) - 1, 0)
            self.scroll_to(y=target, animate=False)

    def resized(self) -> None:
        self._lay_out()

    def _draw_row(self, index: int, width: int) -> Content:
        row = self._rows[index]
        here = row.change is not None and row.change == self.change
        if row.fold:
            text = f"{self.glyphs.fold} {counted(row.fold, 'unchanged line')}"
            return paint(line((f"{text:^{width}}", Role.DIM)), self.glyphs.ascii_only)
        if not self._beside:
            cell, side = (row.left, 0) if row.left is not None else (row.right, 1)
            return self._cell(cell, side, width, here)
        half = (width - 1) // 2
        left, right = self._cell(row.left, 0, half, here), self._cell(row.right, 1, width - half - 1, here)
        return Content.assemble(left, (self.glyphs.divider, "$kb-dim"), right)

    def _cell(self, cell: Cell | None, side: int, width: int, here: bool) -> Content:
        if cell is None:
            return Content(" " * width)
        number = f"{cell.number + 1:>4}" if cell.start == 0 else f"{self.glyphs.wrap:>4}"
        sign = _SIGNS[cell.kind]
        changed = cell.kind is not Change.SAME
        tint, few = (_LEFT, _RIGHT)[side], self.app.native_ansi_color
        gutter_style = f"bold {tint.replace('$', '$text-')}" if changed else "$kb-dim"
        code = self._code[side][cell.number][cell.start : cell.end]
        if self.glyphs.ascii_only:
            code = Content(to_ascii(code.plain), spans=list(code.spans))
        for start, end in cell.spans:
            a, b = max(start, cell.start) - cell.start, min(end, cell.end) - cell.start
            if a < b:
                code = code.stylize("bold reverse" if few else f"bold underline on {tint} 35%", a, b)
        body = Content.assemble((f"{number}{sign} ", gutter_style), code)
        body = body.pad_right(max(width - body.cell_length, 0))
        return body.stylize_before(f"on {tint} {16 if here else 9}%") if changed and not few else body


def coloured(source: str) -> list[Content]:
    """The source's lines with syntax colours."""
    lines = highlight(source, language="python", theme=CodeTheme).split("\n", allow_blank=True)
    return [*lines, *([Content("")] * (len(source.splitlines()) - len(lines)))]
