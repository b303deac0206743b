"""Effects: an audit hook (PEP 578) against what a candidate's code may ask of Python. It cannot be taken off again.

Whoever can look at live objects, climb from frame to frame, start a thread, call C functions by address or exchange a
function's code can undo every other check in its process. So such requests fail with PermissionError where they come
from code that is not Python's, torch's, Triton's or ours, and they are remembered, for a candidate may catch that.
"""

import _thread
import os
import sys
import sysconfig
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

#: Refused wherever in the standard library the request was passed on.
_REFUSED = frozenset({
    "gc.get_objects", "gc.get_referrers", "gc.get_referents", "sys._current_frames", "sys._current_exceptions",
    "sys.settrace", "sys.setprofile", "sys.addaudithook", "sys.monitoring.register_callback",
    "_thread.start_new_thread", "_thread.start_joinable_thread", "object.__setattr__", "object.__delattr__",
    "code.__new__", "signal.pthread_kill", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.spawn",
    "os.system", "os.kill", "os.killpg", "subprocess.Popen", "syslog.openlog",
})  # fmt: skip
_REFUSED_PREFIXES = ("ctypes.", "socket.")
#: Refused where the candidate's own line makes it: dataclasses and named tuples use these too.
_REFUSED_AT_FIRST_HAND = frozenset({"exec", "compile"})
#: Attributes that lead to a frame, and modules that hand frames on.
_FRAMES = frozenset({"tb_frame", "gi_frame", "cr_frame", "ag_frame"})
_DEFAULTS = frozenset({"__defaults__", "__kwdefaults__"})
_FRAME_GIVERS = ("inspect.py", "traceback.py")
#: ``kbtui``'s folder: by then its modules can no longer be found by name.
_PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_OURS = ("kbtui", "sample_kernels")
_LOOKED_AT = _REFUSED | _REFUSED_AT_FIRST_HAND | {"sys._getframe", "object.__getattr__", "import", "open"}


def install() -> Callable[[], tuple[str, ...]]:
    """Refuse from now on. Returns what tells which requests were refused, by name.

    Nothing but the interpreter and that function holds the hook, so nothing leads to it.
    """
    refused: list[str] = []
    busy = [False]
    library, trusted = _places()

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if (event not in _LOOKED_AT and not event.startswith(_REFUSED_PREFIXES)) or busy[0]:
            return
        busy[0] = True
        try:
            bad = _is_refused(event, arguments, sys._getframe(1), library, trusted)
        finally:
            busy[0] = False
        if bad:
            refused.append(event)
            raise PermissionError(f"a candidate may not use {event}")

    sys.addaudithook(hook)
    if sys.version_info < (3, 12):
        _refuse_threads(refused)
    return lambda: tuple(refused)


def _refuse_threads(refused: list[str]) -> None:
    """Before 3.12 starting a thread raises no audit event. The harness starts none in this process."""

    def start_new_thread(*_: Any, **__: Any) -> None:
        refused.append("_thread.start_new_thread")
        raise PermissionError("a candidate may not start a thread")

    for module, name in ((_thread, "start_new_thread"), (_thread, "start_new"), (threading, "_start_new_thread")):
        setattr(module, name, start_new_thread)


def _is_refused(
    event: str, arguments: tuple[Any, ...], frame: FrameType | None, library: tuple[str, ...], trusted: tuple[str, ...]
) -> bool:
    first = frame.f_code.co_filename if frame is not None else ""
    at_first_hand = not first.startswith((*library, *trusted))
    match event:
        case "exec" | "compile":
            return at_first_hand
        case "sys._getframe":
            return at_first_hand or (first.endswith(_FRAME_GIVERS) and not _is_trusted(frame, library, trusted))
        case "object.__getattr__" if arguments[1] not in _FRAMES:
            return False
        case "object.__setattr__" | "object.__delattr__" if arguments[1] != "__code__":
            # Named tuples set the defaults of what they make.
            return at_first_hand and arguments[1] in _DEFAULTS
        case "import" if str(arguments[0]).partition(".")[0] not in _OURS:
            return False
        case "open" if not _leads_to_memory(arguments[0]):
            return False
    return not _is_trusted(frame, library, trusted)


def _is_trusted(frame: FrameType | None, library: tuple[str, ...], trusted: tuple[str, ...]) -> bool:
    """Whether whoever asked the standard library is one of us."""
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(trusted):
            return True
        if not name.startswith(library):
            return False
        frame = frame.f_back
    return True


def _leads_to_memory(path: Any) -> bool:
    name = os.fsdecode(path) if isinstance(path, (str, bytes)) else ""
    return (name.startswith("/proc/") and name.endswith(("/mem", "/maps"))) or "/fd/" in name


def _places() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Where the standard library's code says it lies, and where torch's, Triton's, NumPy's and ours does."""
    library = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), os.path.dirname(os.__file__)}
    packages = [sys.modules[name].__file__ for name in ("torch", "triton", "numpy") if name in sys.modules]
    trusted = {os.path.dirname(path) for path in packages if path} | {_PROJECT}
    # Packages lie below the standard library's folder in some installations.
    return ("<frozen ", *sorted(f"{p}/" for p in library)), tuple(sorted(f"{p}/" for p in trusted))
