"""The viewer on a real pseudo-terminal: what it sends, and how it leaves."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "viewer_in_terminal.py"
LEAVES_ALTERNATE_SCREEN = b"\x1b[?1049l"


class Terminal:
    """A child on a pty of 120x40; ``marks`` are the counts of bytes received when the child said so."""

    def __init__(self, scenario: str) -> None:
        reading, writing = os.pipe()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.set_inheritable(writing, True)
            environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
            environment.pop("NO_COLOR", None)
            environment |= {"NO_COLOR": "1"} if scenario == "plain" else {}
            os.execve(sys.executable, [sys.executable, str(SCRIPT), scenario, str(writing)], environment)
        os.close(writing)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.reading = reading
        self.received = b""
        self.marks: list[int] = []
        self.times: list[float] = []

    def read_until(self, n_marks: int | None, limit_s: float = 40.0) -> None:
        """Read until so many marks have come, or for None until the child has closed the terminal."""
        deadline = time.monotonic() + limit_s
        while n_marks is None or len(self.marks) < n_marks:
            ready, _, _ = select.select([self.fd, self.reading], [], [], max(deadline - time.monotonic(), 0))
            assert ready, f"nothing more after {limit_s} s; so far {self.received[-300:]!r}"
            if self.fd in ready:
                try:
                    self.received += os.read(self.fd, 65536)
                except OSError:
                    return
            if self.reading in ready and os.read(self.reading, 1):
                self.marks.append(len(self.received))
                self.times.append(time.monotonic())
            elif self.fd not in ready:
                return

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.fd)
        os.close(self.reading)


@pytest.fixture
def terminal(request: pytest.FixtureRequest) -> Iterator[Terminal]:
    opened = Terminal(request.param)
    yield opened
    opened.close()
    os.waitpid(opened.pid, 0)


@pytest.mark.parametrize(("terminal", "limit_bytes_s"), [("idle", 200), ("busy", 60_000)], indirect=["terminal"])
def test_traffic_at_120x40_stays_within_what_a_thin_line_carries(terminal: Terminal, limit_bytes_s: int) -> None:
    terminal.read_until(2)
    sent, seconds = terminal.marks[1] - terminal.marks[0], terminal.times[1] - terminal.times[0]
    assert sent / seconds <= limit_bytes_s


@pytest.mark.parametrize("terminal", ["idle"], indirect=True)
@pytest.mark.parametrize("how", ["q", signal.SIGTERM, signal.SIGHUP])
def test_however_it_is_left_the_terminal_is_given_back_and_it_says_how_to_return(
    terminal: Terminal, how: str | signal.Signals
) -> None:
    terminal.read_until(1)
    assert LEAVES_ALTERNATE_SCREEN not in terminal.received
    if isinstance(how, str):
        os.write(terminal.fd, how.encode())
    else:
        os.kill(terminal.pid, how)
    terminal.read_until(None)
    tail = terminal.received[terminal.received.index(LEAVES_ALTERNATE_SCREEN) :].decode()
    assert "kbtui attach softmax-7" in tail


@pytest.mark.parametrize("terminal", ["plain"], indirect=True)
def test_no_color_sends_no_colour_and_still_shows_the_cursor(terminal: Terminal) -> None:
    terminal.read_until(1)
    styles = {code for found in re.findall(rb"\x1b\[([\d;]*)m", terminal.received) for code in found.split(b";")}
    assert styles <= {b"", b"0", b"1", b"2", b"3", b"4", b"7", b"39", b"49"}  # 39 and 49 are the defaults
    assert b"7" in styles
