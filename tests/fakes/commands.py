"""The command line as a user has it: real processes, with nothing of the developer's settings."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.kill_campaign import alive, descendants

__all__ = ["alive", "descendants", "kbtui", "one_line", "started"]

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "kbtui"]


def kbtui(
    *words: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None, timeout_s: float = 120.0
) -> "subprocess.CompletedProcess[str]":
    """One command to its end, outside the checkout where ``cwd`` says so; ``env`` is added to this process's."""
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | (env or {}),
        timeout=timeout_s,
        stdin=subprocess.DEVNULL,
    )


@contextmanager
def started(*words: str | Path) -> Iterator["subprocess.Popen[str]"]:
    """A command at work in a process group of its own, as a shell starts it; ended with the test."""
    process = subprocess.Popen(
        [*COMMAND, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def one_line(done: "subprocess.CompletedProcess[str]") -> str:
    """What a failed command said: exactly one line on stderr besides the run's beginning, and no data."""
    said = [line for line in done.stderr.splitlines() if not line.startswith("run ")]
    assert done.stdout == "", done.stdout
    assert len(said) == 1, done.stderr
    assert said[0].startswith("kbtui: "), said[0]
    assert "defect" not in said[0], said[0]
    return said[0]
