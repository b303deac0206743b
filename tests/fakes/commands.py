"""The command line as a user has it: real processes, with nothing of the developer's settings."""

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.kill_campaign import alive, descendants

__all__ = ["alive", "descendants", "kbtui", "kbtui_forked", "one_line", "started"]

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "kbtui"]
#: What commands import once they have work to do.
PRELOADED = ["tests.fakes.commands", "kbtui.cli", "kbtui.config", "kbtui.commands.run", "kbtui.engine.main"]


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


def kbtui_forked(
    *words: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None, timeout_s: float = 120.0
) -> "subprocess.CompletedProcess[str]":
    """As ``kbtui``, in a process forked from one that has imported the command line: a tenth of the time.

    For the many commands that only refuse; how a process really starts, ``kbtui`` shows.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    with tempfile.TemporaryDirectory(prefix="kbtui-forked-") as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        given = os.environ | {"PYTHONPATH": str(ROOT)} | (env or {})
        said = (str(out), str(err))
        process = context.Process(target=_forked, args=(list(map(str, words)), str(cwd or Path.cwd()), given, said))
        process.start()
        process.join(timeout_s)
        if process.is_alive():
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired([*COMMAND, *map(str, words)], timeout_s)
        return subprocess.CompletedProcess(
            [*COMMAND, *words], process.exitcode or 0, out.read_text(errors="replace"), err.read_text(errors="replace")
        )


def _forked(words: list[str], cwd: str, env: dict[str, str], said: tuple[str, str]) -> None:
    """In the forked process: what a shell does before it starts a command, then the console script."""
    for fd, target in enumerate((os.devnull, *said)):
        opened = os.open(target, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(opened, fd)
        os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = (open(fd, mode, closefd=False) for fd, mode in enumerate("rww"))  # noqa: SIM115
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["kbtui", *words]
    from kbtui.cli import main

    main()


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
