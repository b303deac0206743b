"""Effects: force what was written to the disk."""

import os
from pathlib import Path


def fsync(path: Path) -> None:
    """A file's content, or the names in a folder."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
