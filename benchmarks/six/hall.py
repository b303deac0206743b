"""The process in which a call's contests are held, one after the other. Effects: processes, stdin, stdout, files.

It opens the device once: torch, Triton and torch.compile are imported for all cases of a call, and nothing of it is on
the GPU while a search runs. A hang ends with it; the next contest gets another.
"""

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.six.search import ROOT, end, environment, last_words
from kbtui.console import tell
from kbtui.errors import EngineError, KbtuiError

READY, DONE, FAILED = b"ready\n", b"done\n", b"failed\n"
#: torch and what compiles are imported from a cold disk.
START_S = 150.0
_STOP_S = 10.0


@dataclass(slots=True)
class Hall:
    """``command`` starts the process; its own log is what it says before the first contest."""

    command: list[str]
    log: Path
    _process: "subprocess.Popen[bytes] | None" = None
    _said: bytearray = field(default_factory=bytearray)

    def open(self) -> None:
        """Start it where it does not run. Raises EngineError where the device cannot be had."""
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._said.clear()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, cwd=ROOT, env=environment(),
                process_group=0,
            )  # fmt: skip
        if (answer := self._answer(START_S)) != READY:
            self.close()
            why = "it did not start in time" if answer is None else last_words(self.log)
            raise EngineError(f"the contest came to nothing: {why}", f"read {self.log}")

    def hold(self, case: str, log: Path, limit_s: float) -> None:
        """Have a case's contest held; its result is a file. Raises EngineError, and the process is gone then."""
        self.open()
        assert self._process is not None
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{case}\n".encode())
            self._process.stdin.flush()
        answer = self._answer(limit_s)
        if answer != DONE:
            self.close(0.0 if answer is None else _STOP_S)
            why = f"ended after {limit_s:.0f} s" if answer is None else last_words(log)
            raise EngineError(f"the contest came to nothing: {why}", f"read {log}")

    def close(self, patience_s: float = _STOP_S) -> None:
        """End it and all that it started; so long it may take to end by itself. Idempotent."""
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience_s)
        end(process)

    def _answer(self, limit_s: float) -> bytes | None:
        """A line; what there is of one where the process is gone, None where it came too late."""
        assert self._process is not None
        assert self._process.stdout is not None
        until, fd = time.monotonic() + limit_s, self._process.stdout.fileno()
        while not self._said.endswith(b"\n"):
            if not select.select([fd], [], [], max(0.0, until - time.monotonic()))[0]:
                return None
            if not (more := os.read(fd, 4096)):
                break
            self._said += more
        answer = bytes(self._said)
        self._said.clear()
        return answer


def stdout_for_answers() -> int:
    """Inside, before all else: the descriptor to answer on; what is printed from now on goes where errors go."""
    answers = os.dup(1)
    os.dup2(2, 1)
    return answers


def serve(answers: int, hold: Callable[[str], None], log_of: Callable[[str], Path]) -> None:
    """Inside: hold each contest that is named on stdin, until that is closed. Whatever is printed goes to its log."""
    os.write(answers, READY)
    for line in sys.stdin:
        case = line.strip()
        with _printing_to(log_of(case)):
            try:
                hold(case)
                answer = DONE
            except KbtuiError as error:
                tell(str(error))
                answer = FAILED
        os.write(answers, answer)


@contextlib.contextmanager
def _printing_to(log: Path) -> Iterator[None]:
    """Of an error that nobody foresaw the traceback is there too: it ends the process before anything else."""
    with log.open("ab") as out:
        for fd in (1, 2):
            os.dup2(out.fileno(), fd)
    yield
