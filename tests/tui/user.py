"""A person at the viewer: presses keys and reads what is on the screen."""

from typing import TypeVar

from fake_source import FakeSource
from textual.pilot import Pilot
from textual.screen import Screen

from kbtui.tui.app import Viewer
from kbtui.tui.leaving import ViewerExit
from kbtui.tui.screens.dashboard import Dashboard
from kbtui.tui.widgets.line_list import LineList

S = TypeVar("S", bound=Screen[object])


class User:
    """What they see is text; what they ask for is in ``source.asked``."""

    def __init__(self, viewer: Viewer, pilot: Pilot[ViewerExit], source: FakeSource) -> None:
        self.viewer, self.pilot, self.source = viewer, pilot, source

    async def settle(self) -> None:
        for _ in range(3):
            await self.pilot.pause()

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
        await self.settle()

    async def look_again(self) -> None:
        """The viewer polls."""
        self.viewer.tick()
        await self.settle()

    def text(self, selector: str) -> str:
        widget = self.viewer.screen.query_one(selector, LineList)
        return "\n".join("".join(s.text for s in widget.render_line(y)).rstrip() for y in range(widget.size.height))

    def title(self, selector: str) -> str:
        return str(self.viewer.screen.query_one(selector).border_title)

    @property
    def said(self) -> str:
        """What the viewer last answered."""
        return f"{self.viewer.said.path} {self.viewer.said.words}".strip()

    @property
    def panes(self) -> list[str]:
        """The panes that are on the screen."""
        return [p.id or "" for p in self.viewer.screen.query(".pane") if p.display]

    @property
    def dashboard(self) -> Dashboard:
        screen = self.viewer.screen
        assert isinstance(screen, Dashboard), screen
        return screen

    @property
    def selected(self) -> str | None:
        return self.dashboard.look.selected

    @property
    def asked(self) -> list[tuple[str, str]]:
        """Commands inserted so far, as (kind, argument)."""
        return [(c.kind.value, c.argument) for c in self.source.asked]
