"""Starting an engine that outlives the terminal. Effects: a detached process, its log, a readiness pipe."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kbtui.domain.codec import to_plain
from kbtui.engine.spec import RunSpec
from kbtui.errors import EngineError, ExitCode, KbtuiError, UsageError

#: Until the run exists: a problem that is new here is vetted first. An engine that dies is noticed at once.
READY_S = 900.0
#: Silence that is worth a word to whoever waits.
SLOW_S = 4.0


Begun = Callable[[str], None]


def _say_nothing(run: str) -> None:
    pass


class ReportedError(KbtuiError):
    """What the engine said before it gave up, with its own exit code."""

    def __init__(self, what: str, exit_code: int) -> None:
        super().__init__(what)
        self.exit_code = ExitCode(exit_code)


def start_detached(
    spec: RunSpec, log_path: Path, opening_s: float = 0.0, begun: Begun = _say_nothing, slow: Begun = _say_nothing
) -> str:
    """Start the engine in a session of its own and return its run's name once the run exists.

    ``begun`` is told that name; then the engine is watched for up to ``opening_s`` more, until the problem is open on
    the device, for what goes wrong there. ``slow`` is told the problem's name where the run takes its time to begin.
    Raises what the engine reported (bad input, a held workspace), or EngineError with the end of its log.
    """
    read_fd, write_fd = os.pipe()
    try:
        process = _start(spec, log_path, write_fd)
    except OSError as error:
        os.close(read_fd)
        raise UsageError(f"cannot write {log_path}: {error.strerror}", "give --workspace DIR") from None
    finally:
        os.close(write_fd)
    said = _Said(read_fd)
    try:
        ready = said.next_line(SLOW_S)
        if ready is None and not said.ended:
            slow(spec.problem)
            ready = said.next_line(READY_S)
        if ready is None:
            raise _silent(process, log_path)
        run = str(_checked(ready)["run"])
        begun(run)
        if opening_s and (opened := said.next_line(opening_s)) is not None:
            _checked(opened)
        elif opening_s and said.ended:
            raise _silent(process, log_path)
        return run
    finally:
        os.close(read_fd)


def _start(spec: RunSpec, log_path: Path, write_fd: int) -> "subprocess.Popen[bytes]":
    log_path.parent.mkdir(parents=True, exist_ok=True)
    with log_path.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "kbtui.engine.main", json.dumps(to_plain(spec)), str(write_fd)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(write_fd,),
        )


@dataclass(slots=True)
class _Said:
    """What comes through the pipe, line by line. ``ended``: the engine closed it."""

    fd: int
    buffer: bytes = b""
    ended: bool = False
    lines: list[bytes] = field(default_factory=list)

    def next_line(self, for_s: float) -> bytes | None:
        deadline_s = time.monotonic() + for_s
        while not self.lines and not self.ended:
            readable, _, _ = select.select([self.fd], [], [], max(0.0, deadline_s - time.monotonic()))
            if not readable:
                return None
            read = os.read(self.fd, 65536)
            self.ended = not read
            *whole, self.buffer = (self.buffer + read).split(b"\n")
            self.lines += whole
        return self.lines.pop(0) if self.lines else None


def _checked(line: bytes) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(line)
    if "error" in said:
        raise ReportedError(said["error"], said["exit_code"])
    return said


def _silent(process: "subprocess.Popen[bytes]", log_path: Path) -> EngineError:
    try:
        code = process.wait(1.0)
    except subprocess.TimeoutExpired:
        process.kill()
        code = None
    tail = log_path.read_text(errors="replace").strip().splitlines()[-1:] or ["no output"]
    state = "did not start in time" if code is None else f"ended with {code}"
    return EngineError(f"the engine {state}: {tail[0]}", f"see {log_path}")
