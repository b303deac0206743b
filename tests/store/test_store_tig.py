"""The kernel repository in the real tig, in a real terminal."""

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

LOOK_S = 30.0


class Terminal:
    """One program in a terminal of 160 × 45 cells, under a tmux server of its own."""

    def __init__(self, socket: Path, command: str, cwd: Path) -> None:
        self._tmux = ["tmux", "-S", str(socket), "-f", os.devnull]
        self._call("new-session", "-d", "-x", "160", "-y", "45", "-c", str(cwd), command)

    def shows(self, *wanted: str) -> str:
        """The screen, once all of these are on it; fails the test with what is there instead."""
        deadline_s = time.monotonic() + LOOK_S
        while not all(text in (screen := self._call("capture-pane", "-p")) for text in wanted):
            assert time.monotonic() < deadline_s, f"{wanted} is not on the screen:\n{screen}"
            threading.Event().wait(0.05)
        return screen

    def press(self, *keys: str) -> None:
        self._call("send-keys", *keys)

    def close(self) -> None:
        self._call("kill-server")

    def _call(self, *words: str) -> str:
        return subprocess.run([*self._tmux, *words], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def open_tig(told, tmp_path, monkeypatch) -> Iterator[Callable[[str], Terminal]]:
    """Tig with nobody's settings, on the kernel repository."""
    monkeypatch.setenv("TIGRC_USER", os.devnull)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    for name in ("TMUX", "LINES", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    opened: list[Terminal] = []

    def start(arguments: str) -> Terminal:
        opened.append(Terminal(tmp_path / "tmux", f"stty rows 45 cols 160; tig {arguments}", told[0].git_dir))
        return opened[0]

    yield start
    for terminal in opened:
        terminal.close()


@pytest.mark.program("tig")
@pytest.mark.program("tmux")
def test_tig_lists_the_candidates_and_shows_ones_change(told, open_tig):
    _, run, _ = told
    tig = open_tig(f"runs/{run}")
    tig.shows("c0004 online softmax 4", "c0003 online softmax 3", "c0001 online softmax 1", f"[runs/{run}]")
    tig.press("/")
    tig.press("-l", "c0003 online softmax 3$")
    tig.press("Enter")
    tig.press("Enter")
    tig.shows("Operator: online_softmax", "Hint: several_rows")
    tig.press("O")  # the change alone, on the whole screen
    tig.shows("+line_3 = 3  # by candidate 3")


@pytest.mark.program("tig")
@pytest.mark.program("tmux")
def test_tig_tells_the_story_of_a_run(told, open_tig):
    _, run, _ = told
    tig = open_tig(f"--first-parent runs/{run}")
    screen = tig.shows("end: budget; 10m spent", "start softmax on A100-SXM4-80GB", "r2 c0003 online softmax 3: 1.30")
    assert "] c0003 online" not in screen
