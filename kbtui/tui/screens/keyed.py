"""A screen on which every key of the table does something, or says why not."""

from typing import ClassVar

from textual.binding import BindingType
from textual.geometry import Size
from textual.screen import Screen

from kbtui.tui.feed import News
from kbtui.tui.glyphs import Glyphs
from kbtui.tui.keymap import shown_key
from kbtui.tui.keys import BY_ID, bindings
from kbtui.tui.screens.typing import viewer

#: What a window says when it is too small to be read.
TOO_SMALL = "kbtui needs 60 columns and 16 rows.\nMake the window larger, or the font smaller."


def too_small(size: Size) -> bool:
    """Whether a window is smaller than any screen can be read in."""
    return size.width < 60 or size.height < 16


class KeyedScreen(Screen[None]):
    """Overrides the actions that mean something on it; ``WHERE`` says where the others do."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings()]
    WHERE: ClassVar[str] = "esc goes back"
    HELP_PAGE: ClassVar[str] = "rungs"

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(classes="ascii" if glyphs.ascii_only else "")
        self.g = glyphs

    def on_mount(self) -> None:
        """Beside each screen's own: the window may be too small for it from the first."""
        self.set_class(too_small(self.app.size), "too-small")

    @property
    def built(self) -> bool:
        """Whether its widgets are there to be shown something."""
        return bool(self.query("#status"))

    def hear(self, news: News) -> None:
        """Something was read, and the moment has taken it in; for screens that show it."""

    def show_status(self) -> None:
        """Say what the viewer has to say; every screen has a line for it."""

    def not_here(self, key_id: str) -> None:
        """Say that a key means nothing on this screen, and where it does."""
        key = BY_ID[key_id]
        shown, name = shown_key(key, viewer(self).options.keymap), key.label or key_id.replace("_", " ")
        viewer(self).say(f"{shown} ({name}) does nothing here; {self.WHERE}")

    def action_steer(self, name: str) -> None:
        self.not_here(name)

    def action_look(self, name: str) -> None:
        self.not_here(name)

    def action_resume_engine(self) -> None:
        self.not_here("resume")

    def action_pane(self, number: int) -> None:
        self.not_here(f"pane_{number}")

    def action_step_pane(self, by: int) -> None:
        self.not_here("next_pane" if by > 0 else "previous_pane")

    def action_zoom(self) -> None:
        self.not_here("zoom")

    def action_back(self) -> None:
        self.dismiss(None)

    def action_runs(self) -> None:
        viewer(self).list_runs()

    def action_help(self) -> None:
        self.open_help(self.HELP_PAGE)

    def open_help(self, page: str) -> None:
        from kbtui.tui.screens.help import Help

        self.app.push_screen(Help(page, self.g))
