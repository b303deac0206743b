"""Small disks that tests may fill: tmpfs, mounted for one test."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, *options: str) -> Iterator[Path]:
    """A tmpfs at this new folder, e.g. with ``size=64m``. Skips the test where nothing can be mounted."""
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no tmpfs can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(path: Path, leave_bytes: int = 0) -> None:
    """Write into a file until so many bytes are left on its disk."""
    with path.open("wb", buffering=0) as ballast:
        try:
            while _free(path) > leave_bytes:
                ballast.write(b"\0" * min(1 << 16, max(_free(path) - leave_bytes, 1)))
        except OSError:
            return


def _free(path: Path) -> int:
    return shutil.disk_usage(path.parent).free
