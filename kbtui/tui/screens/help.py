"""Help for the focused pane, over what it is about."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from kbtui.tui.glyphs import Glyphs
from kbtui.tui.help_text import help_lines
from kbtui.tui.screens.typing import viewer
from kbtui.tui.widgets.lines import Lines


class Help(ModalScreen[None]):
    """Esc, ? and q close it."""

    DEFAULT_CSS = """
    Help { align: center middle; background: $background 50%; }
    Help > Vertical { width: 92; max-width: 96%; height: 90%; padding: 0 1;
      border: round $primary; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,q", "close", "Close")]

    def __init__(self, pane: str, glyphs: Glyphs) -> None:
        super().__init__()
        self.pane, self.g = pane, glyphs

    def compose(self) -> ComposeResult:
        with Vertical() as window:
            window.border_title = "Help"
            window.border_subtitle = "esc closes"
            yield Lines(glyphs=self.g, focusable=True, id="help-lines")

    def on_mount(self) -> None:
        lines, keymap = self.query_one(Lines), viewer(self).options.keymap
        lines.show(lambda w, _h: help_lines(self.pane, w, self.g, keymap))
        lines.focus()

    def action_close(self) -> None:
        self.dismiss(None)
