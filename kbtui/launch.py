"""Starting an engine that outlives the terminal. Effects: a detached process, its log, a readiness pipe."""

import json
import os
import select
import subprocess
import sys
from pathlib import Path

from kbtui.domain.codec import to_plain
from kbtui.engine.spec import RunSpec
from kbtui.errors import EngineError, ExitCode, KbtuiError

READY_S = 60.0


class ReportedError(KbtuiError):
    """What the engine said before it gave up, with its own exit code."""

    def __init__(self, what: str, exit_code: int) -> None:
        super().__init__(what)
        self.exit_code = ExitCode(exit_code)


def start_detached(spec: RunSpec, log_path: Path) -> str:
    """Start the engine in a session of its own and return its run's name once the run exists.

    Raises what the engine reported (bad input, a held workspace), or EngineError with the end of its log.
    """
    read_fd, write_fd = os.pipe()
    log_path.parent.mkdir(parents=True, exist_ok=True)
    with log_path.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "kbtui.engine.main", json.dumps(to_plain(spec)), str(write_fd)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(write_fd,),
        )
    os.close(write_fd)
    try:
        return _await_ready(read_fd, process, log_path)
    finally:
        os.close(read_fd)


def _await_ready(read_fd: int, process: "subprocess.Popen[bytes]", log_path: Path) -> str:
    readable, _, _ = select.select([read_fd], [], [], READY_S)
    line = os.read(read_fd, 65536) if readable else b""
    if not line:
        tail = log_path.read_text(errors="replace").strip().splitlines()[-1:] or ["no output"]
        code = process.poll()
        state = "did not start in time" if code is None else f"ended with {code}"
        raise EngineError(f"the engine {state}: {tail[0]}", f"see {log_path}")
    said = json.loads(line)
    if "error" in said:
        raise ReportedError(said["error"], said["exit_code"])
    return str(said["run"])
