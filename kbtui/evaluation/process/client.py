"""Effects: the engine's side: starts zygotes, asks them for children, calls methods in those and kills them."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from kbtui.errors import EngineError
from kbtui.evaluation.process import child, wire
from kbtui.evaluation.process.failures import WorkerDied, WorkerError, WorkerTimeout
from kbtui.evaluation.process.sandbox import Protection, SandboxPolicy
from kbtui.evaluation.process.zygote import MESSAGE_BYTES

READY_TIMEOUT_S = 120.0
_EXIT_TIMEOUT_S = 10.0
_LOG_TAIL_BYTES = 4000
_MEMORY_CHECK_S = 0.2
_ZYGOTE_MAIN = "from kbtui.evaluation.process.zygote import main; main()"


@dataclass(frozen=True, slots=True)
class Reply:
    """What a method returned: a JSON value, and bytes where it attached some."""

    value: Any
    payload: bytes | None


@dataclass(slots=True)
class _Exit:
    """A child's end, told by the zygote. ``code``: exit status, or the signal's number negated."""

    event: threading.Event = field(default_factory=threading.Event)
    code: int | None = None


class Zygote:
    """A process that has torch and Triton imported, and forks children of itself on request.

    ``interpret`` sets TRITON_INTERPRET, which Triton reads while it is imported. Safe to use from several threads.
    Starting it does not block; the first ``spawn`` waits until it is ready (9 s on a cold machine).
    """

    def __init__(self, log_path: Path, *, interpret: bool, env: Mapping[str, str] | None = None) -> None:
        self.interpret = interpret
        self.log_path = log_path
        log_path.parent.mkdir(parents=True, exist_ok=True)
        self._homes = Path(tempfile.mkdtemp(prefix="children-", dir=log_path.parent.resolve()))
        self._lock = threading.Lock()
        self._pools: dict[tuple[str, SandboxPolicy | None], _Pool] = {}
        self._replies: dict[int, tuple[threading.Event, list[int]]] = {}
        self._exits: dict[int, _Exit] = {}
        self._ready = threading.Event()
        self._gone = False
        self._next_token = 0
        self.versions: dict[str, str] = {}
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = _start(theirs, log_path, interpret, env or {})
        theirs.close()
        threading.Thread(target=self._listen, name=f"zygote-{self._process.pid}", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def spawn(self, role: str, *, sandbox: SandboxPolicy | None, fds: tuple[int, ...] = ()) -> "Worker":
        """A child running ``role`` (a module with ``make(fds)``): a warm spare where a pool has one, else a fresh one.

        ``fds`` are duplicated into the child. Raises EngineError when the zygote is gone.
        """
        pool = self._pools.get((role, sandbox))
        worker = pool.take() if pool else None
        worker = worker or self._fork(role, sandbox, warm=False)
        worker.hand_over(fds)
        if pool:
            pool.fill()
        return worker

    def pool(self, role: str, sandbox: SandboxPolicy | None, size: int) -> None:
        """Keep ``size`` spares of this kind, forked, confined and warmed (the role's ``warm(fds)``, with no fds)."""
        pool = self._pools.setdefault((role, sandbox), _Pool(self, role, sandbox))
        pool.size = size
        pool.fill()

    @contextlib.contextmanager
    def quiet(self, timeout_s: float = 30.0) -> Iterator[None]:
        """While this is entered no spare starts or warms up: waits for those that do, holds back new ones."""
        pools = tuple(self._pools.values())
        for pool in pools:
            pool.hold(timeout_s)
        try:
            yield
        finally:
            for pool in pools:
                pool.release()

    def close(self) -> None:
        """End the zygote and all its children. Idempotent; returns when they are gone."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(_EXIT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._gone = True
        for pool in self._pools.values():
            pool.drop()
        shutil.rmtree(self._homes, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fork(self, role: str, sandbox: SandboxPolicy | None, *, warm: bool) -> "Worker":
        self._await_ready()
        with self._lock:
            token = self._next_token = self._next_token + 1
            done, pid = threading.Event(), list[int]()
            self._replies[token] = (done, pid)
        birth = child.Birth(role, sandbox, self._homes / str(token), warm)
        birth.scratch.mkdir(parents=True)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            self._ask({"do": "spawn", "token": token, "birth": child.birth_to_plain(birth)}, [theirs.fileno()])
        if not done.wait(READY_TIMEOUT_S) or not pid:
            ours.close()
            raise self._died()
        return Worker(self, pid[0], ours, birth)

    def _await_ready(self) -> None:
        if not self._ready.wait(READY_TIMEOUT_S) or self._gone:
            raise self._died()

    def _died(self) -> EngineError:
        tail = _tail(self.log_path).strip().splitlines()
        why = f" ({tail[-1][-200:]})" if tail else ""
        return EngineError(f"the process that starts children is gone{why}", f"see {self.log_path}, then run again")

    def _ask(self, message: dict[str, Any], fds: list[int]) -> None:
        text = json.dumps(message).encode()
        try:
            with self._lock:
                socket.send_fds(self._control, [text], fds)
        except OSError as error:
            raise self._died() from error

    def _kill(self, pid: int) -> None:
        with contextlib.suppress(EngineError):
            self._ask({"do": "kill", "pid": pid}, [])

    def _exit_of(self, pid: int) -> _Exit:
        with self._lock:
            return self._exits.setdefault(pid, _Exit())

    def _forget(self, pid: int, ended: _Exit) -> None:
        with self._lock:
            if self._exits.get(pid) is ended:
                del self._exits[pid]

    def _listen(self) -> None:
        while True:
            try:
                text = self._control.recv(MESSAGE_BYTES)
            except OSError:
                text = b""
            if not text:
                return self._mark_gone()
            self._hear(json.loads(text))

    def _hear(self, message: dict[str, Any]) -> None:
        if "ready" in message:
            self.versions = message["ready"]
            self._ready.set()
        elif "spawned" in message:
            with self._lock:
                self._exits[message["spawned"]] = _Exit()
                done, pid = self._replies.pop(message["token"])
            pid.append(message["spawned"])
            done.set()
        elif "exited" in message:
            ended = self._exit_of(message["exited"])
            ended.code = message["status"]
            ended.event.set()

    def _mark_gone(self) -> None:
        self._gone = True
        self._ready.set()
        with self._lock:
            waiting, exits = list(self._replies.values()), list(self._exits.values())
        for done, _ in waiting:
            done.set()
        for ended in exits:
            ended.event.set()


class Worker:
    """One child. Calls come from one thread at a time; ``kill`` from any."""

    def __init__(self, zygote: Zygote, pid: int, sock: socket.socket, birth: child.Birth) -> None:
        self.pid = pid
        self.birth = birth
        self.protections: tuple[Protection, ...] = ()
        self._zygote, self._sock = zygote, sock
        self._exit = zygote._exit_of(pid)
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
        if self.alive:
            self._zygote._kill(self.pid)
            self._exit.event.wait(_EXIT_TIMEOUT_S)
        self._zygote._forget(self.pid, self._exit)
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
        return _tail(self.birth.log)

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
        limit = self.birth.policy.memory_bytes if self.birth.policy else None
        while limit is not None and not wire.readable(self._sock, min(deadline, time.monotonic() + _MEMORY_CHECK_S)):
            if _resident_bytes(self.pid) > limit:
                self._why_killed = f"over its {limit >> 20} MiB of memory"
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


class _Pool:
    """Spares of one kind. Filled by a thread of its own, for a fork of a large process takes tens of milliseconds."""

    def __init__(self, zygote: Zygote, role: str, sandbox: SandboxPolicy | None) -> None:
        self.size = 0
        self._zygote, self._role, self._sandbox = zygote, role, sandbox
        self._lock = threading.Condition()
        self._spares: deque[Worker] = deque()
        self._filling = False
        self._held = 0

    def take(self) -> Worker | None:
        with self._lock:
            while self._spares:
                spare = self._spares.popleft()
                if spare.alive:
                    return spare
                spare.kill()
        return None

    def fill(self) -> None:
        with self._lock:
            if self._filling or self._held or len(self._spares) >= self.size:
                return
            self._filling = True
        threading.Thread(target=self._fill, name=f"spares-{self._role}", daemon=True).start()

    def hold(self, timeout_s: float) -> None:
        with self._lock:
            self._held += 1
            self._lock.wait_for(lambda: not self._filling, timeout_s)

    def release(self) -> None:
        with self._lock:
            self._held -= 1
        self.fill()

    def drop(self) -> None:
        with self._lock:
            self.size = 0
            spares, self._spares = list(self._spares), deque()
        for spare in spares:
            spare.kill()

    def _fill(self) -> None:
        try:
            while self._wants_more():
                spare = self._zygote._fork(self._role, self._sandbox, warm=True)
                spare.await_start()
                with self._lock:
                    self._spares.append(spare)
        except (EngineError, WorkerDied, WorkerError, WorkerTimeout):
            # A kind that cannot start shows its reason where it is spawned, in the caller's hands.
            pass
        finally:
            with self._lock:
                self._filling = False
                self._lock.notify_all()

    def _wants_more(self) -> bool:
        with self._lock:
            return not self._held and len(self._spares) < self.size


def _start(theirs: socket.socket, log_path: Path, interpret: bool, env: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    root = str(Path(__file__).parents[3])
    inherited = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    settings = {"PYTHONPATH": root, "PYTHONSAFEPATH": "1", "PYTHONUNBUFFERED": "1"}
    if interpret:
        settings["TRITON_INTERPRET"] = "1"
    with log_path.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-c", _ZYGOTE_MAIN, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**inherited, **settings, **env},
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
            cwd="/",
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


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - _LOG_TAIL_BYTES))
            return log.read().decode(errors="replace")
    except OSError:
        return ""
