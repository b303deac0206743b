"""Effects: removes what a killed engine left half written, and bounds the cache of compiled kernels.

Only under the engine's lock, when no writer of this workspace is alive. In a repository that is the user's, only files
that bear kbtui's name and that nobody has written to for a while.
"""

import contextlib
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from store.artifacts import PART
from store.objects import TEMPORARY
from store.workspace import Workspace

#: Packs of a git that still works at them are touched more often than this.
QUIET_S = 600.0
_OURS = f"??/{TEMPORARY}*"
#: Of earlier versions, which wrote beside the folders, and of a git that was killed.
_OTHERS = ("obj*", "pack/tmp_*", "??/tmp_obj_*")
CACHE_BYTES = 2 << 30
#: Kernels compiled so recently may be in use: ``kbtui verify`` takes no lock.
CACHE_QUIET_S = 3600.0
#: Of a candidate's folder; what all of them share has other names.
_NAME_CHARS = 24


def sweep(workspace: Workspace, now_s: float | None = None) -> int:
    """Remove temporary files that nobody will finish; returns how many there were."""
    now_s = time.time() if now_s is None else now_s
    objects = workspace.git_dir / "objects"
    left = [*workspace.artifacts.glob(f"{PART}*")]
    if workspace.own_repository:
        left += [*objects.glob(_OURS), *_quiet((p for glob in _OTHERS for p in objects.glob(glob)), now_s)]
    else:  # another workspace's engine may be writing there
        left += _quiet(objects.glob(_OURS), now_s)
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
    held = sorted((*_weigh(f), f) for f in cache.glob("*") if f.is_dir() and len(f.name) == _NAME_CHARS)
    over, gone = sum(n_bytes for _, n_bytes, _ in held) - most_bytes, 0
    for written_s, n_bytes, folder in held:
        if over <= 0 or written_s > now_s - CACHE_QUIET_S:
            break
        shutil.rmtree(folder, ignore_errors=True)
        over, gone = over - n_bytes, gone + 1
    return gone


def _quiet(paths: Iterable[Path], now_s: float) -> Iterator[Path]:
    """Files that nobody has written to for a while."""
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            if path.is_file() and path.stat().st_mtime < now_s - QUIET_S:
                yield path


def _weigh(folder: Path) -> tuple[float, int]:
    """(when something in it was last written, its bytes); a compiler may be at work in it."""
    written_s, n_bytes = 0.0, 0
    for path in (folder, *folder.rglob("*")):
        with contextlib.suppress(FileNotFoundError):
            found = path.lstat()
            written_s = max(written_s, found.st_mtime)
            n_bytes += found.st_size if stat.S_ISREG(found.st_mode) else 0
    return written_s, n_bytes
