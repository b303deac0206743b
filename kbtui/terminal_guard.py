"""Effects: a small process beside the viewer, that gives the terminal back when the viewer can no longer do so.

A viewer that ends in order does that itself; one that is killed with -9, or by the kernel for want of memory, leaves
the alternate screen, mouse reports and a raw terminal behind. The watcher sees its end of a pipe close and mends it.
"""

import contextlib
import os
import signal
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

#: Leave the alternate screen; no mouse, focus or paste reports; kitty's keys off; plain characters, a cursor, wrapping.
RESTORE = (
    b"\x1b[?1049l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[<u"
    b"\x1b[0m\x1b[?25h\x1b[?7h"
)
#: What `ps` calls the watcher, so that `killall -9 kbtui` spares it.
NAME = "term-guard"

_DEAF_TO = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTOU)


def guard_terminal(say: str) -> Callable[[], None]:
    """Watch over this process's terminal from now on, until what is returned is called.

    ``say``: a line for the user once the terminal has been mended. Call it before there are threads.
    """
    if not (sys.stdin is not None and sys.stdin.isatty()):
        return lambda: None
    saved = termios.tcgetattr(0)
    reading, writing = os.pipe()
    watcher = os.fork()
    if watcher == 0:
        os.close(writing)
        _watch(reading, saved, say)
    os.close(reading)

    def give_back() -> None:
        with contextlib.suppress(OSError):
            os.write(writing, b"!")
        os.close(writing)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(watcher, 0)

    return give_back


def _watch(reading: int, saved: list[Any], say: str) -> NoReturn:
    try:
        for number in _DEAF_TO:
            signal.signal(number, signal.SIG_IGN)
        Path("/proc/self/comm").write_text(NAME)
        if os.read(reading, 1) == b"":
            _mend(saved, say)
    finally:
        os._exit(0)


def _mend(saved: list[Any], say: str) -> None:
    """A shell that has taken the terminal back has set its modes by itself: then only the screen is mended."""
    with contextlib.suppress(OSError, termios.error):
        os.write(1, RESTORE)
        if os.tcgetpgrp(0) == os.getpgrp():
            termios.tcsetattr(0, termios.TCSANOW, saved)
        os.write(1, f"\r\n{say}\r\n".encode())
