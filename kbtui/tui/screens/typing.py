"""The app as what it is, for the type checker."""

from typing import TYPE_CHECKING, cast

from textual.screen import Screen

if TYPE_CHECKING:
    from kbtui.tui.app import Viewer


def viewer(screen: Screen[object] | Screen[None]) -> "Viewer":
    """The viewer a screen belongs to."""
    return cast("Viewer", screen.app)
