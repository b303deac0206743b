"""Effects: one holder of a GPU at a time for anything timed, by a lock file per GPU UUID.

The kernel drops the lock when its owner dies. The file holds the owner's pid, for whoever waits.
"""

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from kbtui.errors import DeviceError

_POLL_S = 0.02


class GpuLock:
    """The lock of one GPU, shared by all users of this machine."""

    def __init__(self, uuid: str, directory: Path | None = None) -> None:
        self.path = (directory or Path(tempfile.gettempdir())) / f"kbtui-{uuid}.lock"

    def owner(self) -> int | None:
        """Pid of the process that holds it, None when it is free."""
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return None
        except BlockingIOError:
            text = os.pread(fd, 32, 0).decode(errors="replace").strip()
            return int(text) if text.isdigit() else -1
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def held(self, timeout_s: float = 600.0) -> Iterator[None]:
        """Hold it while this is entered. Raises DeviceError when another process keeps it past ``timeout_s``."""
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            self._take(fd, time.monotonic() + timeout_s)
            os.ftruncate(fd, 0)
            os.pwrite(fd, str(os.getpid()).encode(), 0)
            yield
        finally:
            os.close(fd)

    def _take(self, fd: int, deadline: float) -> None:
        while True:
            with contextlib.suppress(BlockingIOError):
                return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if time.monotonic() >= deadline:
                raise DeviceError(
                    f"process {self.owner()} holds the GPU", "wait for it to finish, or choose another GPU"
                )
            time.sleep(_POLL_S)


class Turn:
    """One holder's turn with a GPU. ``held_s``: how long it has held it, less what it stood aside."""

    def __init__(self, lock: GpuLock, timeout_s: float = 600.0) -> None:
        self._lock, self._timeout_s, self._held = lock, timeout_s, contextlib.ExitStack()
        self._since: float | None = None
        self.held_s = 0.0

    def __enter__(self) -> Self:
        self._held.enter_context(self._lock.held(self._timeout_s))
        self._since = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        if self._since is not None:
            self.held_s += time.monotonic() - self._since
            self._since = None
        self._held.close()

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Others may have it while this is entered. Raises DeviceError where one of them does not give it back.

        Who is told to end meanwhile (KeyboardInterrupt, SystemExit) leaves at once, and holds it no more.
        """
        self.__exit__()
        try:
            yield
        except Exception:
            self.__enter__()
            raise
        self.__enter__()
