"""Effects: the engine's lock on a workspace. The kernel releases it when the engine dies, whatever way it dies."""

import errno
import fcntl
import json
import os
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from kbtui.errors import DiskFullError, EngineError, KbtuiError, UsageError

#: A reader that asks whether the lock is held takes it for an instant; an engine tries again for this long.
RETRY_S = 0.3


@dataclass(frozen=True, slots=True)
class LockHolder:
    """Who holds the lock: process id, the run it works on (empty before it has one), start time (ISO 8601, UTC)."""

    pid: int
    run: str
    started_at: str


class EngineLock:
    """Held for the engine's life, and by ``reindex``. A process it forks without exec would keep it held."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None
        self._started_at = ""

    def acquire(self, run: str = "") -> Self:
        """Raises EngineError naming the holder where another process has it, UsageError where it cannot be made."""
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise _unwritable(self.path, error) from None
        if not _try_lock(fd, RETRY_S):
            os.close(fd)
            raise _held_by(read_holder(self.path))
        self._fd = fd
        self._started_at = datetime.now(UTC).isoformat(timespec="seconds")
        try:
            self.name_run(run)
        except KbtuiError:
            os.close(fd)
            self._fd = None
            raise
        return self

    def name_run(self, run: str) -> None:
        """Write into the lock which run this engine works on. Raises DiskFullError or UsageError where it cannot."""
        if self._fd is None:
            raise EngineError("the engine's lock is not held", "this is a defect of kbtui")
        text = json.dumps(asdict(LockHolder(os.getpid(), run, self._started_at))) + "\n"
        try:
            os.pwrite(self._fd, text.encode(), 0)
            os.ftruncate(self._fd, len(text.encode()))
        except OSError as error:
            raise _unwritable(self.path, error) from None

    def release(self) -> None:
        if self._fd is not None:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> Self:
        return self if self._fd is not None else self.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()


def lock_holder(path: Path) -> LockHolder | None:
    """Who holds the lock now; None where nobody does, a dead process's leavings included."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return read_holder(path)
    finally:
        os.close(fd)
    return None


def read_holder(path: Path) -> LockHolder | None:
    """The last holder the file names, alive or not."""
    try:
        return LockHolder(**json.loads(path.read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def _try_lock(fd: int, for_s: float) -> bool:
    deadline = time.monotonic() + for_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.01)
        else:
            return True


def _unwritable(path: Path, error: OSError) -> KbtuiError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFullError(f"no room to write {path}: {error.strerror}", "make room, then try again")
    return UsageError(f"cannot write {path}: {error.strerror}", "give --workspace DIR")


def _held_by(holder: LockHolder | None) -> EngineError:
    if holder is None:
        return EngineError("another kbtui engine is starting in this workspace", "try again, or use --workspace DIR")
    at = f"run {holder.run}" if holder.run else "no run yet"
    return EngineError(
        f"this workspace has an engine already: pid {holder.pid}, {at}, since {holder.started_at}",
        "`kbtui attach` to watch it, `kbtui stop` to end it, or use --workspace DIR",
    )
