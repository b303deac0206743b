"""Effects: the life of a forked child: confine itself, load its role, answer calls until the engine hangs up."""

import contextlib
import ctypes
import importlib
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

from kbtui.domain.codec import from_plain
from kbtui.evaluation.process import sandbox, wire
from kbtui.evaluation.process.failures import HarnessError
from kbtui.evaluation.process.places import Place, candidate_line, place_of
from kbtui.evaluation.process.sandbox import SandboxPolicy

#: A role's method may take ``payload`` (bytes or None) beside its JSON parameters, and may return ``Attached``.
Methods = Mapping[str, Callable[..., Any]]
_PR_SET_PDEATHSIG = 1
_TRACEBACK_CHARS = 2000


@dataclass(frozen=True, slots=True)
class Attached:
    """A method's answer that carries bytes beside its JSON value."""

    value: Any
    payload: bytes


@dataclass(frozen=True, slots=True)
class Birth:
    """What a child is born with."""

    role: str
    policy: SandboxPolicy | None
    home: Path
    warm: bool

    @property
    def scratch(self) -> Path:
        return self.home / "scratch"

    @property
    def log(self) -> Path:
        return self.home / "log"


def birth_to_plain(birth: Birth) -> dict[str, Any]:
    plain = None if birth.policy is None else asdict(birth.policy)
    if plain is not None:
        plain |= {name: [str(p) for p in plain[name]] for name in ("read", "write", "exec")}
    return {"role": birth.role, "policy": plain, "home": str(birth.home), "warm": birth.warm}


def birth_from_plain(plain: dict[str, Any]) -> Birth:
    policy = plain["policy"]
    if policy is not None:
        paths = {name: tuple(map(Path, policy[name])) for name in ("read", "write", "exec")}
        env = from_plain(tuple[tuple[str, str], ...], policy["env"])
        policy = SandboxPolicy(**(policy | paths | {"env": env}))
    return Birth(plain["role"], policy, Path(plain["home"]), plain["warm"])


def live(birth: Birth, sock: socket.socket, zygote_pid: int) -> NoReturn:
    """Never returns, never raises: ends the process. A role that cannot start says so in its first frame."""
    status = 1
    try:
        _settle(birth, zygote_pid)
        with contextlib.suppress(wire.Closed):
            _serve(birth, sock)
        status = 0
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _settle(birth: Birth, zygote_pid: int) -> None:
    os.setsid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != zygote_pid:
        os._exit(1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    log = os.open(birth.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


def _serve(birth: Birth, sock: socket.socket) -> None:
    try:
        protections = _confine(birth)
        role = importlib.import_module(birth.role)
        if _warms(birth) and hasattr(role, "warm"):
            role.warm(())
        protections += _locked(birth)
    except Exception as error:
        wire.send(sock, {"failed": describe(error)})
        return
    wire.send(sock, {"ready": [asdict(p) for p in protections]})
    _, fds, _, _ = socket.recv_fds(sock, 1, 253)
    methods: Methods = {}
    failed: dict[str, Any] | None = None
    try:
        methods = role.make(tuple(fds))
    except Exception as error:
        failed = describe(error)
    while True:
        frame = wire.receive(sock)
        _answer(methods, frame, sock, failed)


def _warms(birth: Birth) -> bool:
    """A spare does, and whoever may have sockets until it is warm."""
    return birth.warm or (birth.policy is not None and birth.policy.unix_sockets)


def _locked(birth: Birth) -> tuple[sandbox.Protection, ...]:
    return sandbox.lock(birth.policy) if birth.policy is not None and sandbox.switched_on() else ()


def _confine(birth: Birth) -> tuple[sandbox.Protection, ...]:
    if birth.policy is None:
        return ()
    if not sandbox.switched_on():
        sandbox.settle(birth.policy, birth.scratch)
        return (sandbox.Protection("sandbox", False, f"{sandbox.SWITCH}=off"),)
    return sandbox.apply(birth.policy, birth.scratch)


def _answer(methods: Methods, frame: wire.Frame, sock: socket.socket, failed: dict[str, Any] | None) -> None:
    number, name, params = frame.message["id"], frame.message["method"], frame.message["params"]
    if failed is not None:
        return wire.send(sock, {"id": number, "error": failed})
    if frame.payload is not None:
        params["payload"] = frame.payload
    try:
        value = methods[name](**params)
        payload = value.payload if isinstance(value, Attached) else None
        wire.send(sock, {"id": number, "value": value.value if isinstance(value, Attached) else value}, payload)
    except wire.Closed:
        raise
    except Exception as error:
        wire.send(sock, {"id": number, "error": describe(error)})


def describe(error: BaseException) -> dict[str, Any]:
    """An exception as JSON: what a WorkerError is made of.

    Its class may be a candidate's, and so may that of its text: all that calls them is tried, and the text is copied
    into a plain one before it is cut or sent.
    """
    try:
        text, message = "".join(traceback.format_exception(error)), str.__str__(str(error))
        line, place, raised_at = candidate_line(error), place_of(error), _raised_at(error)
    except BaseException:  # whatever a candidate's class raises
        text, message, line, place, raised_at = "", "an exception that cannot be printed", None, Place.ELSEWHERE, ""
    return {
        "type": type.__dict__["__name__"].__get__(type(error)),  # whatever a class of its class says
        "message": message[:_TRACEBACK_CHARS],
        "traceback": text[-_TRACEBACK_CHARS:],
        "line": line,
        "place": place,
        "ours": issubclass(type(error), HarnessError),  # an instance may lie about its class
        "raised_at": raised_at[:_TRACEBACK_CHARS],
    }


def _raised_at(error: BaseException) -> str:
    """The file, the number and the text of the line that raised it; empty where none is known."""
    frames = traceback.extract_tb(error.__traceback__, limit=-1)
    return "".join(f"{Path(f.filename).name}:{f.lineno}" + (f": {f.line}" if f.line else "") for f in frames)
