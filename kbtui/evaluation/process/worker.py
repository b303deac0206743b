"""Effects: calls methods in one child over its socket, watches its memory and its deadline, kills it."""

import contextlib
import os
import shutil
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from kbtui.evaluation.process import child, wire
from kbtui.evaluation.process.failures import WorkerDied, WorkerError, WorkerTimeout
from kbtui.evaluation.process.sandbox import Protection

READY_TIMEOUT_S = 120.0
EXIT_TIMEOUT_S = 10.0
_LOG_TAIL_BYTES = 4000
_WATCH_S = 0.2
_MAX_SCRATCH_FILES = 10_000


@dataclass(frozen=True, slots=True)
class Reply:
    """What a method returned: a JSON value, and bytes where it attached some."""

    value: Any
    payload: bytes | None


@dataclass(slots=True)
class Exit:
    """A child's end, told by the zygote. ``code``: exit status, or the signal's number negated."""

    event: threading.Event = field(default_factory=threading.Event)
    code: int | None = None


class Worker:
    """One child. Calls come from one thread at a time; ``kill`` from any."""

    def __init__(
        self, pid: int, sock: socket.socket, birth: child.Birth, ended: Exit, signal_group: Callable[["Worker"], None]
    ) -> None:
        self.pid = pid
        self.birth = birth
        self.protections: tuple[Protection, ...] = ()
        self._sock, self._exit, self._signal_group = sock, ended, signal_group
        self._started = False
        self._why_killed = ""
        self._posted: deque[tuple[int, str]] = deque()
        self._next_id = 0

    def hand_over(self, fds: tuple[int, ...]) -> None:
        with contextlib.suppress(OSError):
            socket.send_fds(self._sock, [b"S"], list(fds))

    def call(self, method: str, *, timeout_s: float, payload: bytes | None = None, **params: Any) -> Reply:
        """Run a method of the role and wait for its answer.

        Raises WorkerDied, WorkerTimeout (after killing the child) and WorkerError (an exception in the child).
        """
        self.post(method, payload=payload, **params)
        return self.result(timeout_s)

    def post(self, method: str, *, payload: bytes | None = None, **params: Any) -> None:
        """Send a call and return; answers come in order from ``result``. Raises WorkerDied."""
        self._next_id += 1
        self._posted.append((self._next_id, method))
        try:
            wire.send(self._sock, {"id": self._next_id, "method": method, "params": params}, payload)
        except (wire.Closed, OSError) as error:
            raise self._death() from error

    def result(self, timeout_s: float) -> Reply:
        """The answer to the oldest posted call. The time a child needs to start is not counted."""
        number, method = self._posted.popleft()
        self.await_start()
        frame = self._receive(method, timeout_s)
        if frame.message.get("id") != number:
            raise self._broken("an answer to a call that was not made")
        if "error" in frame.message:
            raise _worker_error(frame.message["error"])
        return Reply(frame.message.get("value"), frame.payload)

    def await_start(self, timeout_s: float = READY_TIMEOUT_S) -> None:
        """Wait until the child is confined and its role imported (and warmed). Raises as ``call`` does."""
        if self._started:
            return
        frame = self._receive("start", timeout_s)
        if "failed" in frame.message:
            raise _worker_error(frame.message["failed"])
        self.protections = tuple(Protection(**p) for p in frame.message["ready"])
        self._started = True

    def kill(self, why: str = "") -> None:
        """End the child and all it started, remove its scratch directory. Idempotent; returns when it is gone."""
        self._why_killed = self._why_killed or why
        self._signal_group(self)
        self._exit.event.wait(EXIT_TIMEOUT_S)
        self._sock.close()
        shutil.rmtree(self.birth.home, ignore_errors=True)

    close = kill

    @property
    def alive(self) -> bool:
        return not self._exit.event.is_set()

    @property
    def scratch(self) -> Path:
        return self.birth.scratch

    def log_tail(self) -> str:
        """The end of what the child wrote on stdout and stderr."""
        return tail_of(self.birth.log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def _receive(self, method: str, timeout_s: float) -> wire.Frame:
        try:
            return self._receive_watched(time.monotonic() + timeout_s)
        except wire.Overdue:
            tail = self.log_tail()
            self.kill(f"no answer to {method} in {timeout_s:g} s")
            raise WorkerTimeout(method, timeout_s, tail) from None
        except (wire.Closed, OSError):
            raise self._death() from None
        except wire.BadFrame as error:
            raise self._broken(str(error)) from None

    def _receive_watched(self, deadline: float) -> wire.Frame:
        policy = self.birth.policy
        while policy and not wire.readable(self._sock, min(deadline, time.monotonic() + _WATCH_S)):
            if _resident_bytes(self.pid) > policy.memory_bytes:
                self._why_killed = f"over its {policy.memory_bytes >> 20} MiB of memory"
                raise wire.Closed
            if _exceeds(self.scratch, policy.scratch_bytes):
                self._why_killed = f"over its {policy.scratch_bytes >> 20} MiB of disk"
                raise wire.Closed
            if time.monotonic() >= deadline:
                raise wire.Overdue
        return wire.receive(self._sock, deadline)

    def _broken(self, what: str) -> WorkerDied:
        self._why_killed = f"broke the protocol: {what}"
        return self._death()

    def _death(self) -> WorkerDied:
        tail = self.log_tail()
        self.kill()
        code, why = self._exit.code, self._why_killed
        signal_number = -code if code is not None and code < 0 else None
        return WorkerDied(
            signal_number=signal_number,
            status=code if code is not None and code >= 0 else None,
            log_tail=tail,
            why=why,
        )


def _worker_error(described: Any) -> WorkerError:
    if not isinstance(described, dict):
        return WorkerError("Unknown", str(described), "", None)
    line = described.get("line")
    return WorkerError(
        str(described.get("type")),
        str(described.get("message")),
        str(described.get("traceback", "")),
        line if isinstance(line, int) else None,
    )


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


def _exceeds(folder: Path, limit_bytes: int) -> bool:
    """Whether the files below take more than this, or are more than a kernel could need."""
    used = count = 0
    for where, _, names in os.walk(folder):
        for name in names:
            count += 1
            with contextlib.suppress(OSError):
                used += os.lstat(os.path.join(where, name)).st_blocks * 512
            if used > limit_bytes or count > _MAX_SCRATCH_FILES:
                return True
    return False


def tail_of(path: Path) -> str:
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - _LOG_TAIL_BYTES))
            return log.read().decode(errors="replace")
    except OSError:
        return ""
