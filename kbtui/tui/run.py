"""Effects: the viewer on this terminal, from start to exit; and a picture of it for the documents."""

import asyncio
import signal
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

from kbtui.tui.app import Viewer, ViewerOptions
from kbtui.tui.leaving import ViewerExit, leave
from kbtui.tui.source import RunSource


def run_viewer(
    source: RunSource,
    run: str | None,
    *,
    refresh_hz: float = 4.0,
    ascii_only: bool = False,
    readonly: bool = False,
    theme: str | None = None,
    copy_folder: Path | None = None,
    resume: Callable[[str], str] | None = None,
    keymap: tuple[tuple[str, str], ...] = (),
) -> ViewerExit:
    """Show a run, or the list of runs for None, until the user leaves; the caller prints the exit's lines.

    ``resume`` starts an engine on a run (on another thread) and returns what to say of it in one line.
    A hang-up or a termination of the terminal leaves as ``q`` does.
    """
    options = ViewerOptions(refresh_hz, ascii_only, readonly, theme, resume=resume, keymap=keymap)
    if copy_folder is not None:
        options = ViewerOptions(refresh_hz, ascii_only, readonly, theme, copy_folder, resume, keymap)
    app = _Signalled(source, run, options)
    left = app.run()
    return left if left is not None else leave(app.moment)


class _Signalled(Viewer):
    """The viewer on a real terminal: SIGHUP and SIGTERM end it in order, so the terminal is left sane."""

    def on_mount(self) -> None:
        """Beside the viewer's own: Textual calls the handler of every class."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGHUP, signal.SIGTERM):
            loop.add_signal_handler(number, self.action_leave)


class _Inline(Executor):
    """Runs each job in the caller."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def render_svg(
    source: RunSource,
    run: str | None,
    size: tuple[int, int] = (140, 40),
    keys: tuple[str, ...] = (),
    theme: str = "kbtui-dark",
) -> str:
    """The viewer's screen as an SVG after pressing ``keys``; size in columns and rows."""
    return asyncio.run(_render(source, run, size, keys, theme))


async def _render(source: RunSource, run: str | None, size: tuple[int, int], keys: tuple[str, ...], theme: str) -> str:
    app = Viewer(source, run, ViewerOptions(theme=theme), executor=_Inline())
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
        await pilot.pause()
        return app.export_screenshot(title=f"kbtui {run or ''}".strip())
