"""Effects: git refs, read and moved in this process, under git's own lock files."""

import os
import re
from pathlib import Path

from kbtui.errors import EngineError
from store.fsync import fsync

_COMMIT_ID = re.compile("[0-9a-f]{40}")


class RefMovedError(Exception):
    """A ref does not stand where it was left; ``current`` is where it stands (None: it is gone)."""

    def __init__(self, ref: str, current: str | None) -> None:
        super().__init__(f"{ref} is at {current}")
        self.current = current


def read_ref(git_dir: Path, ref: str) -> str | None:
    """Commit a ref stands at, None where there is none or its file names none."""
    try:
        return _named_commit(git_dir / ref)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return _packed_refs(git_dir).get(ref)


def list_refs(git_dir: Path, prefix: str) -> dict[str, str | None]:
    """Refs under a prefix such as ``refs/heads/runs/``, by full name; None where the file names no commit."""
    refs: dict[str, str | None] = {ref: oid for ref, oid in _packed_refs(git_dir).items() if ref.startswith(prefix)}
    loose = (path for path in (git_dir / prefix).rglob("*") if path.is_file() and path.suffix != ".lock")
    return refs | {str(path.relative_to(git_dir)): _named_commit(path) for path in loose}


def _named_commit(path: Path) -> str | None:
    text = path.read_text(errors="replace").strip()
    return text if _COMMIT_ID.fullmatch(text) else None


def move_ref(git_dir: Path, ref: str, new: str, expected: str | None) -> None:
    """Compare and swap, under git's own lock file for the ref. Raises RefMovedError where it is not at ``expected``."""
    lock = _lock_ref(git_dir, ref)
    try:
        current = read_ref(git_dir, ref)
        if current != expected:
            raise RefMovedError(ref, current)
        lock.write_text(new + "\n")
        fsync(lock)
        lock.rename(git_dir / ref)
    except BaseException:
        lock.unlink(missing_ok=True)
        raise
    fsync(lock.parent)


def break_ref_lock(git_dir: Path, ref: str) -> None:
    """Remove the lock that a killed writer left on a ref. Only for refs which are ours alone."""
    (git_dir / f"{ref}.lock").unlink(missing_ok=True)


def _lock_ref(git_dir: Path, ref: str) -> Path:
    lock = git_dir / f"{ref}.lock"
    if not lock.parent.is_dir() and read_ref(git_dir, str(Path(ref).parent)) is not None:
        raise EngineError(f"{git_dir} has a branch named {Path(ref).parent.name!r} in the way", "rename that branch")
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    except FileExistsError:
        raise EngineError(f"{lock} exists: another git process is at work", "remove it if none is") from None
    return lock


def _packed_refs(git_dir: Path) -> dict[str, str]:
    try:
        lines = (git_dir / "packed-refs").read_text().splitlines()
    except FileNotFoundError:
        return {}
    pairs = (line.split(" ", 1) for line in lines if line and line[0] not in "#^")
    return {ref: oid for oid, ref in pairs}
