"""Effects: git objects, written in this process with gitdb (GitPython's object database).

Nothing here reads the user's git configuration, hooks or ``GIT_*`` variables. GitPython's own ``Git`` and ``Repo`` are
not used for that reason: they hand the caller's environment on to every process, from which a variable cannot be taken
away.
"""

import contextlib
import errno
import hashlib
import os
import subprocess
import tempfile
import threading
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import IO

from gitdb.fun import write_object  # type: ignore[import-untyped]
from gitdb.stream import ZippedStoreShaWriter  # type: ignore[import-untyped]

from kbtui.errors import EngineError
from store.fsync import fsync
from store.git_process import isolated_environment

#: Begins the name of an object while it is written: ours, and of the kind that git prunes.
TEMPORARY = "tmp_obj_kbtui_"
_TRIES = 5
_PARALLEL_SYNCS = 4
#: Objects asked of git in one go; their names must fit into a pipe, or both sides would wait for each other.
_AT_ONCE = 256


class ObjectStore:
    """The objects of one repository. Writes loose objects; reads those in this process, packed ones through git."""

    def __init__(self, git_dir: Path) -> None:
        self.git_dir = git_dir
        self._root = git_dir / "objects"
        self._unsynced: set[Path] = set()
        self._sound: set[str] = set()
        self._pool = ThreadPoolExecutor(_PARALLEL_SYNCS, thread_name_prefix="git-sync")
        self._batch: subprocess.Popen[bytes] | None = None
        self._batch_lock = threading.Lock()

    def write(self, kind: bytes, content: bytes) -> str:
        """Write one object and return its id; not yet on disk for certain until ``sync``."""
        oid = _object_id(kind, content)
        if oid not in self._sound:
            path = self._root / oid[:2] / oid[2:]
            if path.exists() and self._read_loose(oid) != content:
                path.unlink()  # truncated by a power loss before it was synced
            _write_loose(path, kind, content)
            self._unsynced.add(path)
            self._sound.add(oid)
        return oid

    def sync(self) -> None:
        """Force what was written since the last call to the disk, all at once: they share the journal's commits.

        Each file was renamed by now, and on Linux's journaling file systems fsync takes a file's name with it.
        Raises EngineError where the disk fails; a second try would not tell (Linux reports a lost write only once).
        """
        try:
            list(self._pool.map(_fsync_unless_packed, self._unsynced))
        except OSError as error:
            what = f"the disk of {self.git_dir} does not take what is written: {error.strerror}"
            raise EngineError(what, "look after the disk, then `kbtui resume`") from error
        self._unsynced.clear()

    def read(self, oid: str) -> bytes:
        """Content of an object. Raises EngineError where it is missing."""
        content = self._read_loose(oid)
        return self._there(oid, self._read_packed([oid])[0] if content is None else content)

    def read_many(self, oids: Sequence[str]) -> Iterator[bytes]:
        """Contents in order; packed ones are asked of git many at a time. Raises EngineError at one that is missing."""
        for start in range(0, len(oids), _AT_ONCE):
            chunk = oids[start : start + _AT_ONCE]
            found = {oid: self._read_loose(oid) for oid in chunk}
            packed = [oid for oid, content in found.items() if content is None]
            found |= dict(zip(packed, self._read_packed(packed), strict=True))
            for oid in chunk:
                yield self._there(oid, found[oid])

    def close(self) -> None:
        with self._batch_lock:
            self._end_batch()
        self._pool.shutdown()

    def _read_loose(self, oid: str) -> bytes | None:
        try:
            whole = zlib.decompress((self._root / oid[:2] / oid[2:]).read_bytes())  # gitdb would not notice a lost end
        except (zlib.error, OSError):
            return None
        return whole.partition(b"\0")[2]

    def _there(self, oid: str, content: bytes | None) -> bytes:
        if content is None:
            raise EngineError(f"git object {oid} is missing or damaged in {self.git_dir}", "fetch it from a copy")
        return content

    def _read_packed(self, oids: Sequence[str]) -> list[bytes | None]:
        if not oids:
            return []
        with self._batch_lock:
            for _ in range(2):  # it may have been killed since it was last asked: once more with another
                process = self._batch = self._batch or self._start_batch()
                try:
                    return _answers(process, oids)
                except (BrokenPipeError, EOFError):
                    self._end_batch()
        if not self._root.is_dir():
            raise EngineError(f"there is no repository at {self.git_dir} any more", "put it back, or choose another")
        # At a damaged object git ends: which of them it is, each by itself tells.
        return [self._read_packed([oid])[0] for oid in oids] if len(oids) > 1 else [None]

    def _end_batch(self) -> None:
        if self._batch is not None and self._batch.stdin and self._batch.stdout:
            with contextlib.suppress(BrokenPipeError):
                self._batch.stdin.close()
            self._batch.wait()
            self._batch.stdout.close()
        self._batch = None

    def _start_batch(self) -> subprocess.Popen[bytes]:
        command = ["git", f"--git-dir={self.git_dir}", "cat-file", "--batch"]
        return subprocess.Popen(
            command,
            env=isolated_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # the terminal's Ctrl-C is the engine's to handle
        )


def _answers(process: subprocess.Popen[bytes], oids: Sequence[str]) -> list[bytes | None]:
    """Raises BrokenPipeError or EOFError where the process has ended."""
    assert process.stdin is not None  # both are pipes
    assert process.stdout is not None
    process.stdin.write("".join(f"{oid}\n" for oid in oids).encode())
    process.stdin.flush()
    return [_read_answer(process.stdout, oid) for oid in oids]


def _read_answer(answers: IO[bytes], oid: str) -> bytes | None:
    """One object as ``git cat-file --batch`` writes it; None where there is none, or it is not what its id says."""
    line = answers.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    header = line.split()
    if len(header) != 3:
        return None
    whole = answers.read(int(header[2]) + 1)
    if len(whole) <= int(header[2]):
        raise EOFError
    content = whole[:-1]
    return content if _object_id(header[1], content) == oid else None


def _write_loose(path: Path, kind: bytes, content: bytes) -> None:
    """One loose object, whole or not at all. In gitdb's format; its own file writer leaks the file on a full disk."""
    writer = ZippedStoreShaWriter()
    write_object(kind, len(content), BytesIO(content).read, writer.write)
    writer.close()
    fd, name = _temporary_beside(path)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(writer.getvalue())
        os.chmod(name, 0o444)
        os.rename(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _temporary_beside(path: Path) -> tuple[int, str]:
    """A new file in the object's folder, which a packing git removes whenever it is empty: then it is made again."""
    for _ in range(_TRIES):
        path.parent.mkdir(exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            return tempfile.mkstemp(prefix=TEMPORARY, dir=path.parent)
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path.parent))


def _object_id(kind: bytes, content: bytes) -> str:
    return hashlib.sha1(b"%s %d\0" % (kind, len(content)) + content).hexdigest()


def _fsync_unless_packed(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):  # packed meanwhile, and git synced the pack before it deleted this
        fsync(path)
