"""Effects: measures and removes what a child wrote. It may have been made to be hard to walk: deep, locked, endless."""

import contextlib
import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path

_MAX_FILES = 10_000
_MAX_DEPTH = 200


def exceeds(folders: Iterable[Path], limit_bytes: int) -> bool:
    """Whether what lies below takes more than this, or is more, or deeper, than a kernel could need."""
    used = count = 0
    waiting = [(str(folder), 0) for folder in folders]
    while waiting:
        folder, depth = waiting.pop()
        for entry in _entries(folder):
            count += 1
            with contextlib.suppress(OSError):
                used += entry.stat(follow_symlinks=False).st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, depth + 1))
        if used > limit_bytes or count > _MAX_FILES or depth > _MAX_DEPTH:
            return True
    return False


def remove_tree(folder: Path) -> None:
    """Remove a directory whatever lies in it. Never raises; what cannot be removed stays."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        with contextlib.suppress(OSError):
            _flattened(folder)
            shutil.rmtree(folder, ignore_errors=True)


def _entries(folder: str) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []


def _flattened(root: Path) -> None:
    """Move every directory below up to the top, one at a time: then no path is long and nothing is deep."""
    number = 0
    waiting = [str(root)]
    while waiting:
        folder = waiting.pop()
        os.chmod(folder, stat.S_IRWXU)
        for entry in _entries(folder):
            if entry.is_dir(follow_symlinks=False):
                number += 1
                target = f"{root}/.flat{number}"
                os.chmod(entry.path, stat.S_IRWXU)
                os.rename(entry.path, target)
                waiting.append(target)
            else:
                os.unlink(entry.path)
