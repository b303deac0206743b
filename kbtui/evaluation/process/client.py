"""Effects: the engine's side of a zygote: starts it, asks it for children, ends it and them."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from kbtui.errors import DiskFullError, EngineError
from kbtui.evaluation.process import child
from kbtui.evaluation.process.leftovers import remove_tree
from kbtui.evaluation.process.sandbox import SandboxPolicy
from kbtui.evaluation.process.spares import AT_ONCE, Spares
from kbtui.evaluation.process.worker import EXIT_TIMEOUT_S, READY_TIMEOUT_S, Exit, Worker, tail_of
from kbtui.evaluation.process.zygote import MESSAGE_BYTES
from kbtui.room import is_for_want_of_room

_HOMES = "children-"
_MAX_STARTS = 20
#: No prefix under which anybody keeps a key: not KBTUI_ (an LLM's is there), not NVIDIA_.
_INHERITED_NAMES = frozenset((
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "LIBRARY_PATH",
    "CPATH", "C_INCLUDE_PATH", "CC", "CXX", "XDG_CACHE_HOME", "OMP_NUM_THREADS", "MKL_NUM_THREADS",
    "CUBLAS_WORKSPACE_CONFIG", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "KBTUI_SANDBOX",
    "KBTUI_PRELOAD", "KBTUI_DEVICE",
))  # fmt: skip
_INHERITED_PREFIXES = ("PYTHON", "TRITON_", "TORCH_", "TORCHINDUCTOR_", "PYTORCH_", "CUDA_", "LC_")
_ZYGOTE_MAIN = "from kbtui.evaluation.process.zygote import main; main()"


@dataclass(slots=True)
class _Asked:
    """A child that was asked for; ``pid`` and ``ended`` are there once ``event`` is set, unless the zygote is gone."""

    event: threading.Event = field(default_factory=threading.Event)
    pid: int | None = None
    ended: Exit | None = None


class Zygote:
    """A process that has torch and Triton imported, and forks children of itself on request.

    ``interpret`` sets TRITON_INTERPRET, which Triton reads while it is imported. Safe to use from several threads.
    Starting it does not block; the first ``spawn`` waits until it is ready (9 s on a cold machine). One that is killed
    while it runs takes its children with it and is started anew for the next ``spawn``.
    """

    def __init__(self, log_path: Path, *, interpret: bool, env: Mapping[str, str] | None = None) -> None:
        self.interpret = interpret
        self.log_path = log_path
        log_path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(log_path.parent)
        self._homes = Path(tempfile.mkdtemp(prefix=f"{_HOMES}{os.getpid()}-", dir=log_path.parent.resolve()))
        self._lock = threading.Lock()
        self._pools: dict[tuple[str, SandboxPolicy | None], Spares] = {}
        self._burials: list[threading.Thread] = []
        self._asked: dict[int, _Asked] = {}
        self._exits: dict[int, Exit] = {}
        self._ready = threading.Event()
        self._gone = self._closed = False
        self._next_token = self._n_starts = self._n_ready = 0
        self._env = dict(env or {})
        self._reviving = threading.Lock()
        self.versions: dict[str, str] = {}
        self._launch()

    @property
    def pid(self) -> int:
        return self._process.pid

    def spawn(self, role: str, *, sandbox: SandboxPolicy | None, fds: tuple[int, ...] = ()) -> Worker:
        """A child running ``role`` (a module with ``make(fds)``): a warm spare where a pool has one, else a fresh one.

        ``fds`` are duplicated into the child. Raises EngineError when the zygote is gone.
        """
        pool = self._pools.get((role, sandbox))
        worker = pool.take() if pool else None
        worker = worker or self._fork(role, sandbox, warm=False)
        if not worker.has_descriptors:
            worker.hand_over(fds)
        if pool:
            pool.fill()
        return worker

    def pool(
        self,
        role: str,
        sandbox: SandboxPolicy | None,
        size: int,
        *,
        at_once: int = AT_ONCE,
        finish: Callable[[Worker], None] | None = None,
    ) -> None:
        """Keep ``size`` spares of this kind, forked, confined and warmed (the role's ``warm(fds)``, with no fds).

        ``finish`` makes the first calls of a spare's life, ahead of whoever takes it, who then hands no descriptors
        over; ``at_once`` of them warm up side by side.
        """
        pool = self._pools.setdefault((role, sandbox), Spares(lambda: self._fork(role, sandbox, warm=True)))
        pool.size, pool.at_once = size, at_once
        if finish is not None:
            pool.finish = _beginning(finish)
        pool.fill()

    def drop_spares(self, role: str, sandbox: SandboxPolicy | None) -> None:
        """Let this kind's spares go, without waiting for their ends, and keep none until ``pool`` is called again."""
        pool = self._pools.get((role, sandbox))
        if pool is not None:
            pool.drop(self.bury)

    @contextlib.contextmanager
    def quiet(self, timeout_s: float = 30.0) -> Iterator[None]:
        """While this is entered no spare starts or warms up and no child dies: those that do are stopped or awaited."""
        pools = tuple(self._pools.values())
        for pool in pools:
            pool.hold(timeout_s)
        self._await_burials(timeout_s)
        try:
            yield
        finally:
            for pool in pools:
                pool.release()

    def bury(self, worker: Worker) -> None:
        """End a child without waiting for it: with a GPU's memory mapped its end takes as long as many a check."""
        burial = threading.Thread(target=worker.kill, name="burial", daemon=True)
        with self._lock:
            self._burials = [b for b in self._burials if b.is_alive()] + [burial]
            burial.start()

    def _await_burials(self, timeout_s: float) -> None:
        with self._lock:
            burials = tuple(self._burials)
        for burial in burials:
            burial.join(timeout_s)

    def close(self) -> None:
        """End the zygote and all its children. Idempotent; returns when they are gone."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(EXIT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._gone = True
        for pool in self._pools.values():
            pool.drop()
        self._await_burials(EXIT_TIMEOUT_S)
        remove_tree(self._homes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fork(self, role: str, sandbox: SandboxPolicy | None, *, warm: bool) -> Worker:
        try:
            self.await_ready()
            with self._lock:
                token = self._next_token = self._next_token + 1
            birth = child.Birth(role, sandbox, self._homes / str(token), warm)
            birth.scratch.mkdir(parents=True)
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        except OSError as error:
            raise _cannot_start(error) from error
        with self._lock:
            asked = self._asked[token] = _Asked()
        with theirs:
            self._ask({"do": "spawn", "token": token, "birth": child.birth_to_plain(birth)}, [theirs.fileno()])
        asked.event.wait(READY_TIMEOUT_S)
        if asked.pid is None or asked.ended is None:
            ours.close()
            raise self._died()
        return Worker(asked.pid, ours, birth, asked.ended, self._order)

    def _launch(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = _start(theirs, self.log_path, self.interpret, self._env)
        self._n_starts += 1
        arguments = (self._control,)
        threading.Thread(target=self._listen, args=arguments, name=f"zygote-{self.pid}", daemon=True).start()

    def _revive(self) -> None:
        """Start it again, unless it never got ready or dies over and over."""
        with self._reviving:
            if not self._gone or self._closed or self._n_ready < self._n_starts or self._n_starts > _MAX_STARTS:
                return
            self._process.kill()
            self._process.wait()
            self._control.close()
            with self._lock:
                self._asked.clear()
                self._exits.clear()
            self._ready.clear()
            self._gone = False
            self._launch()

    def await_ready(self) -> None:
        """Return once it has imported what its children need. Raises EngineError where it cannot start."""
        if self._gone:
            self._revive()
        if not self._ready.wait(READY_TIMEOUT_S) or self._gone:
            raise self._died()

    def _died(self) -> EngineError:
        tail = tail_of(self.log_path).strip().splitlines()
        why = f" ({tail[-1][-200:]})" if tail else ""
        return EngineError(f"the process that starts children is gone{why}", f"see {self.log_path}, then run again")

    def _ask(self, message: dict[str, Any], fds: list[int]) -> None:
        text = json.dumps(message).encode()
        try:
            with self._lock:
                socket.send_fds(self._control, [text], fds)
        except OSError as error:
            raise self._died() from error

    def _order(self, worker: Worker, what: str) -> None:
        """``kill``, ``stop`` or ``continue`` a child, by whom alone knows whether its pid is still its own."""
        if worker.alive:
            with contextlib.suppress(EngineError):
                self._ask({"do": what, "pid": worker.pid}, [])

    def _listen(self, control: socket.socket) -> None:
        while True:
            try:
                text = control.recv(MESSAGE_BYTES)
            except OSError:
                text = b""
            if not text:
                return self._mark_gone()
            self._hear(json.loads(text))

    def _hear(self, message: dict[str, Any]) -> None:
        if "ready" in message:
            self.versions = message["ready"]
            self._n_ready += 1
            self._ready.set()
        elif "spawned" in message:
            with self._lock:
                asked = self._asked.pop(message["token"])
                asked.pid, asked.ended = message["spawned"], Exit()
                self._exits[asked.pid] = asked.ended
            asked.event.set()
        elif "exited" in message:
            with self._lock:
                ended = self._exits.pop(message["exited"])
            ended.code = message["status"]
            ended.event.set()

    def _mark_gone(self) -> None:
        self._gone = True
        self._ready.set()
        with self._lock:
            events = [a.event for a in self._asked.values()] + [e.event for e in self._exits.values()]
        for event in events:
            event.set()


def _cannot_start(error: OSError) -> EngineError:
    kind, do = (DiskFullError, "make room") if is_for_want_of_room(error) else (EngineError, "mend that")
    return kind(f"no child can be started: {error}", f"{do}, then try again")


def _beginning(finish: Callable[[Worker], None]) -> Callable[[Worker], None]:
    """A child serves calls once it was handed its descriptors, of which such a spare gets none."""

    def begin(worker: Worker) -> None:
        worker.hand_over(())
        finish(worker)

    return begin


def _sweep(folder: Path) -> None:
    """Remove what children of engines that were killed left behind."""
    for homes in folder.glob(f"{_HOMES}*"):
        owner = homes.name.removeprefix(_HOMES).partition("-")[0]
        if owner.isdigit() and not Path("/proc", owner).exists():
            remove_tree(homes)


def inherited_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What the zygote is started with: its children inherit its memory, in which nothing of the user's may lie.

    What torch, Triton, compilers and drivers read, and no more. TRITON_INTERPRET is set by whoever starts a zygote.
    """
    kept = {n: v for n, v in environ.items() if n in _INHERITED_NAMES or n.startswith(_INHERITED_PREFIXES)}
    return {name: value for name, value in kept.items() if name != "TRITON_INTERPRET"}


def _start(theirs: socket.socket, log_path: Path, interpret: bool, env: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    root = str(Path(__file__).parents[3])
    inherited = inherited_environment(os.environ)
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
