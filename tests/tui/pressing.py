"""How a test presses keys on a running screen, and reads what it shows."""

from collections.abc import Callable

from textual.pilot import Pilot

from kbtui.tui.app import Viewer
from kbtui.tui.leaving import ViewerExit
from kbtui.tui.screens.dashboard import Dashboard
from kbtui.tui.widgets.line_list import LineList

MakeViewer = Callable[..., Viewer]
WIDE = (140, 40)


async def settle(pilot: Pilot[ViewerExit]) -> None:
    """Let messages and the redraws they ask for be handled."""
    for _ in range(3):
        await pilot.pause()


async def press(pilot: Pilot[ViewerExit], *keys: str) -> None:
    for key in keys:
        await pilot.press(key)
    await settle(pilot)


def dashboard(viewer: Viewer) -> Dashboard:
    screen = viewer.screen
    assert isinstance(screen, Dashboard)
    return screen


def text_of(viewer: Viewer, selector: str) -> str:
    """What a pane shows now, as plain text."""
    widget = viewer.screen.query_one(selector, LineList)
    return "\n".join("".join(s.text for s in widget.render_line(y)).rstrip() for y in range(widget.size.height))


def shown(viewer: Viewer) -> list[str]:
    return [p.id or "" for p in viewer.screen.query(".pane") if p.display]
