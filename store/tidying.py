"""Effects: removes what a killed engine left half written, and bounds the cache of compiled kernels.

Only under the engine's lock, when no writer of this workspace is alive. In a repository that is the user's, only files
that bear kbtui's name.
"""

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from store.artifacts import PART
from store.gitio import TEMPORARY
from store.workspace import Workspace

#: Packs of a git that still works at them are touched more often than this.
QUIET_S = 600.0
CACHE_BYTES = 2 << 30
#: Kernels compiled so recently may be in use: ``kbtui verify`` takes no lock.
CACHE_QUIET_S = 3600.0
#: Of a candidate's folder; what all of them share has other names.
_NAME_CHARS = 24


def sweep(workspace: Workspace, now_s: float | None = None) -> int:
    """Remove temporary files that nobody will finish; returns how many there were."""
    now_s = time.time() if now_s is None else now_s
    left = [*_objects(workspace.git_dir), *workspace.artifacts.glob(f"{PART}*")]
    if workspace.own_repository:
        left += _others(workspace.git_dir / "objects", now_s)
    for path in left:
        path.unlink(missing_ok=True)
    for folder in workspace.scratch.glob("import-*"):
        shutil.rmtree(folder, ignore_errors=True)
    return len(left)


def bound_cache(cache: Path, most_bytes: int = CACHE_BYTES, now_s: float | None = None) -> int:
    """Remove compiled kernels, the oldest first, until the rest fits; returns of how many candidates they went.

    ``cache``: the folder with one folder a candidate. A kernel that is asked for again is compiled again.
    """
    now_s = time.time() if now_s is None else now_s
    held = sorted(
        (_written_s(f), _bytes_of(f), f) for f in cache.glob("*") if f.is_dir() and len(f.name) == _NAME_CHARS
    )
    over, gone = sum(n_bytes for _, n_bytes, _ in held) - most_bytes, 0
    for written_s, n_bytes, folder in held:
        if over <= 0 or written_s > now_s - CACHE_QUIET_S:
            break
        shutil.rmtree(folder, ignore_errors=True)
        over, gone = over - n_bytes, gone + 1
    return gone


def _objects(git_dir: Path) -> Iterator[Path]:
    """Half-written objects of ours: the folders are few and small, since packing keeps them so."""
    return (git_dir / "objects").glob(f"??/{TEMPORARY}*")


def _others(objects: Path, now_s: float) -> Iterator[Path]:
    """Of earlier versions, which wrote beside the folders, and of a packing git that was killed."""
    for path in (*objects.glob("obj*"), *(objects / "pack").glob("tmp_*"), *objects.glob("??/tmp_obj_*")):
        with contextlib.suppress(FileNotFoundError):
            if path.is_file() and path.stat().st_mtime < now_s - QUIET_S:
                yield path


def _written_s(folder: Path) -> float:
    return max(p.lstat().st_mtime for p in (folder, *folder.rglob("*")))


def _bytes_of(folder: Path) -> int:
    return sum(p.lstat().st_size for p in folder.rglob("*") if not p.is_dir())
