"""Effects: calls methods in one child over its socket, watches its memory and its deadline, kills it."""

import contextlib
import os
import secrets
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from kbtui.evaluation.process import child, wire
from kbtui.evaluation.process.failures import (
    WorkerDied,
    WorkerError,
    WorkerFailure,
    WorkerNotStarted,
    WorkerTimeout,
)
from kbtui.evaluation.process.leftovers import exceeds, remove_tree
from kbtui.evaluation.process.places import Place
from kbtui.evaluation.process.sandbox import Protection, SandboxPolicy

_NUMBER_BITS = 60
READY_TIMEOUT_S = 120.0
EXIT_TIMEOUT_S = 10.0
_LOG_TAIL_BYTES = 4000
_WATCH_S, _AT_ONCE_S = 0.2, 0.02
_MAX_THREADS = 1024
#: A child that closes its socket is given this long to end by itself, so that its exit status can be told.
_GOODBYE_S = 0.5
#: What a confined child may attach to an answer: memory of the engine's.
_MAX_ATTACHED_BYTES = 64 << 20
#: On a busy machine a deadline moves by the time the child waited for a core, up to this factor.
_MAX_STRETCH = 10.0
#: Stopped, traced, dead, gone.
_NOT_RUNNING, _STILL_POLL_S = frozenset(("T", "t", "Z", "X", "")), 0.0005


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
        self, pid: int, sock: socket.socket, birth: child.Birth, ended: Exit, order: Callable[["Worker", str], None]
    ) -> None:
        self.pid = pid
        self.birth = birth
        self.protections: tuple[Protection, ...] = ()
        self._sock, self._exit, self._order = sock, ended, order
        self._started = False
        #: Whether it was handed its descriptors, perhaps none: from then on it serves calls.
        self.has_descriptors = False
        self._why_killed = ""
        self._posted: deque[tuple[int, str]] = deque()

    def hand_over(self, fds: tuple[int, ...]) -> None:
        self.has_descriptors = True
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
        # Not to be guessed: a candidate that writes on the channel does not know what it would have to answer.
        number = secrets.randbits(_NUMBER_BITS)
        self._posted.append((number, method))
        try:
            wire.send(self._sock, {"id": number, "method": method, "params": params}, payload)
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
        """Wait until the child is confined and its role imported (and warmed). Raises WorkerNotStarted."""
        if self._started:
            return
        try:
            frame = self._receive("start", timeout_s)
            if "failed" in frame.message:
                raise _worker_error(frame.message["failed"])
        except WorkerFailure as failure:
            raise WorkerNotStarted(failure) from failure
        self.protections = tuple(Protection(**p) for p in frame.message["ready"])
        self._started = True

    def kill(self, why: str = "") -> None:
        """End the child and all it started, remove its scratch directory. Idempotent; returns when it is gone."""
        self._why_killed = self._why_killed or why
        self._order(self, "kill")
        self._exit.event.wait(EXIT_TIMEOUT_S)
        self._sock.close()
        remove_tree(self.birth.home)

    close = kill

    def pause(self) -> None:
        """Stop it where it is (SIGSTOP); the kernel lets it finish the system call it is in."""
        self._order(self, "stop")

    def go_on(self) -> None:
        self._order(self, "continue")

    def stands_still(self, timeout_s: float) -> bool:
        """Wait until a paused child runs no more, or is gone."""
        deadline = time.monotonic() + timeout_s
        while _state(self.pid) not in _NOT_RUNNING:
            if time.monotonic() > deadline:
                return False
            time.sleep(_STILL_POLL_S)
        return True

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
        if policy is None:
            return wire.receive(self._sock, deadline)
        # Most answers come at once: what a child waited for a core is read only where one does not.
        if wire.readable(self._sock, min(deadline, time.monotonic() + _AT_ONCE_S)):
            return wire.receive(self._sock, deadline, _MAX_ATTACHED_BYTES)
        patience = _Patience(self.pid, deadline)
        while not wire.readable(self._sock, min(patience.deadline(), time.monotonic() + _WATCH_S)):
            self._why_killed = self._excess(policy)
            if self._why_killed:
                raise wire.Closed
            if time.monotonic() >= patience.deadline():
                raise wire.Overdue
        return wire.receive(self._sock, patience.deadline(), _MAX_ATTACHED_BYTES)

    def _excess(self, policy: SandboxPolicy) -> str:
        """Which of its limits that the kernel does not keep the child is over, in words; empty where none."""
        if _resident_bytes(self.pid) > policy.memory_bytes:
            return f"over its {policy.memory_bytes >> 20} MiB of memory"
        if _n_threads(self.pid) > _MAX_THREADS:
            return f"over its {_MAX_THREADS} threads"
        if exceeds((self.scratch, *policy.folders), policy.scratch_bytes):
            return f"over its {policy.scratch_bytes >> 20} MiB of disk"
        return ""

    def _broken(self, what: str) -> WorkerDied:
        self._why_killed = f"broke the protocol: {what}"
        return self._death()

    def _death(self) -> WorkerDied:
        tail = self.log_tail()
        if not self._why_killed and not self._exit.event.wait(_GOODBYE_S):
            self._why_killed = "closed its connection"
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
    line, place = described.get("line"), described.get("place")
    return WorkerError(
        str(described.get("type")),
        str(described.get("message")),
        str(described.get("traceback", "")),
        line if isinstance(line, int) else None,
        place=Place(place) if place in tuple(Place) else Place.ELSEWHERE,
        ours=described.get("ours") is True,
        raised_at=str(described.get("raised_at", "")),
    )


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


def _state(pid: int) -> str:
    """The letter of proc_pid_stat(5); empty for one that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (OSError, IndexError):
        return ""


def _n_threads(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[17])
    except (OSError, IndexError, ValueError):
        return 0


class _Patience:
    """A deadline that counts only time in which the child could run: on a busy machine it waits for a core.

    Read from /proc/PID/schedstat (documented in the kernel's scheduler/sched-stats.rst); where that cannot be read the
    deadline stands.
    """

    def __init__(self, pid: int, deadline: float) -> None:
        self._pid, self._deadline = pid, deadline
        self._latest = time.monotonic() + _MAX_STRETCH * max(0.0, deadline - time.monotonic())
        self._waited_s = _waited_s(pid)

    def deadline(self) -> float:
        return min(self._latest, self._deadline + max(0.0, _waited_s(self._pid) - self._waited_s))


def _waited_s(pid: int) -> float:
    """Seconds the process's first thread has been ready to run without running."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def tail_of(path: Path) -> str:
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - _LOG_TAIL_BYTES))
            return log.read().decode(errors="replace")
    except OSError:
        return ""
