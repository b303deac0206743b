"""Effects: the viewer on this terminal, from start to exit; and a picture of it for documents and pipes."""

import asyncio
import gc
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from functools import partial
from pathlib import Path
from queue import Full
from typing import Any

from kbtui.tui.app import Viewer, ViewerOptions
from kbtui.tui.keymap import keymap_of
from kbtui.tui.leaving import ViewerExit, leave
from kbtui.tui.source import RunSource
from kbtui.tui.theme import DARK, check_theme
from kbtui.tui.thrift import Thrift

#: By then the first screen is there, and what was made for it stays: it need not be looked through for garbage again.
_SETTLED_AFTER_S = 2.0

#: A key does not wait for the feed's thread, which decodes events, longer than this.
_SWITCH_S = 0.001
#: How long a full queue may stay full before it is looked whether anybody still empties it.
_DEAD_AFTER_S = 0.2
#: How soon a viewer ends whose terminal went without a signal.
_LOOKS_AT_TERMINAL_EVERY_S = 1.0


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
    keys: Mapping[str, str] | None = None,
) -> ViewerExit:
    """Show a run, or the list of runs for None, until the user leaves; the caller prints the exit's lines.

    ``resume`` starts an engine on a run (on another thread) and returns what to say of it in one line; ``keys`` are
    key ids to other keys. A hang-up, a termination or the end of the terminal leaves as ``q`` does. Raises UsageError
    on a theme or a key that is not there.
    """
    check_theme(theme)
    more = {} if copy_folder is None else {"copy_folder": copy_folder}
    options = ViewerOptions(
        refresh_hz, ascii_only, readonly, theme, resume=resume, keymap=keymap_of(keys or {}), **more
    )  # fmt: skip
    sys.setswitchinterval(_SWITCH_S)
    app = _Signalled(source, run, options)
    left = app.run()
    return left if left is not None else leave(app.moment)


class _Signalled(Viewer):
    """The viewer on a real terminal: its end, SIGHUP and SIGTERM end it in order, and the line is not flooded."""

    thrift: Thrift | None = None

    def tick(self) -> None:
        """Look at the store, unless the line has still to carry what was drawn."""
        if self.thrift is None or self.thrift.allows(time.monotonic()):
            super().tick()

    def _count_what_is_sent(self) -> None:
        driver, self.thrift = self._driver, Thrift(at_s=time.monotonic())
        if driver is not None:
            thrift, write = self.thrift, driver.write
            send = partial(_send, driver) if self._is_on_a_terminal() else write

            def counted(text: str) -> None:
                thrift.sent(len(text), time.monotonic())
                send(text)

            driver.write = counted  # type: ignore[assignment]

    def on_mount(self) -> None:
        """Beside the viewer's own: Textual calls the handler of every class."""
        self._count_what_is_sent()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGHUP, signal.SIGTERM):
            loop.add_signal_handler(number, self.action_leave)
        if self._is_on_a_terminal():
            self.set_interval(_LOOKS_AT_TERMINAL_EVERY_S, self._leave_with_the_terminal)
        self.set_timer(_SETTLED_AFTER_S, _collect_from_now_on)

    def _is_on_a_terminal(self) -> bool:
        """Only a terminal's driver has a writing thread; a browser is written to directly."""
        return hasattr(self._driver, "_writer_thread")

    def _leave_with_the_terminal(self) -> None:
        """The kernel sends SIGHUP to the session's leader alone, and passes it on when that ends.

        A leader that ignores it, as a shell under nohup does, waits for its viewer instead; and Textual takes the dead
        terminal for one where nothing was typed, and reads it again at once, for ever.
        """
        if _is_cut_off(0):
            self.action_leave()


def _is_cut_off(terminal: int) -> bool:
    """Whether nothing is behind a terminal any more: its window was closed, or its line dropped."""
    looking = select.poll()
    looking.register(terminal, 0)
    return any(state & (select.POLLHUP | select.POLLERR) for _, state in looking.poll(0))


def _send(driver: Any, text: str) -> None:
    """Hand a text to the driver's writing thread, unless that ended because the terminal is gone.

    A hang-up comes with SIGCONT, at which Textual starts a second writing thread; the dead terminal ends it at its
    first write, and a viewer that goes on filling its queue would wait there for ever.
    """
    while (thread := driver._writer_thread) is not None:
        if not thread.is_alive():
            driver._writer_thread = None
            return
        try:
            thread._queue.put(text, timeout=_DEAD_AFTER_S)
        except Full:
            continue
        return


def _collect_from_now_on() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


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

    def picture(app: Viewer) -> str:
        return app.export_screenshot(title=f"kbtui {run or ''}".strip())

    return asyncio.run(_render(source, run, size, keys, ViewerOptions(theme=theme), picture))


def render_text(source: RunSource, run: str | None, size: tuple[int, int], ascii_only: bool = False) -> str:
    """The viewer's screen as plain lines, without blanks at their ends; size in columns and rows."""
    options = ViewerOptions(theme=DARK.name, ascii_only=ascii_only, readonly=True)
    return asyncio.run(_render(source, run, size, (), options, _plain))


def _plain(app: Viewer) -> str:
    lines = [strip.text.rstrip() for strip in app.screen._compositor.render_strips()]
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(lines) + "\n"


async def _render(
    source: RunSource,
    run: str | None,
    size: tuple[int, int],
    keys: tuple[str, ...],
    options: ViewerOptions,
    picture: Callable[[Viewer], str],
) -> str:
    app = Viewer(source, run, options, executor=_Inline())
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
        await pilot.pause()
        return picture(app)
