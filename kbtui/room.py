"""Whether the disk that holds a folder has room to go on. Effects: asks the file system."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

from kbtui.errors import DiskFullError

#: Free bytes below which nothing is evaluated: a candidate's compiled files take up to a few megabytes.
LEAST_ROOM_BYTES = 32 << 20


def room_on(folder: Path, least_bytes: int = LEAST_ROOM_BYTES) -> Callable[[], str | None]:
    """Says whether the disk that holds a folder is too full to go on."""

    def room() -> str | None:
        lack = lack_of_room(folder, least_bytes)
        return f"{lack}; make room ({least_bytes >> 20} MB) and it goes on" if lack else None

    return room


def need_room(folder: Path, least_bytes: int = LEAST_ROOM_BYTES) -> None:
    """Raises DiskFullError where a folder that may not be there yet is on a disk too full to begin."""
    lack = lack_of_room(folder, least_bytes)
    if lack:
        raise DiskFullError(lack, f"make room ({least_bytes >> 20} MB), then try again")


def lack_of_room(folder: Path, least_bytes: int = LEAST_ROOM_BYTES) -> str | None:
    """How little is free for a folder, where that is too little; by the nearest folder above it that there is.

    Of a disk mounted read-only nothing is said: that there is no writing to it says who tries. Nor of a file system
    that counts no blocks, as ramfs.
    """
    for there in (folder.absolute(), *folder.absolute().parents):
        try:
            disk = os.statvfs(there)
        except OSError:
            continue
        free = disk.f_bavail * disk.f_frsize
        lacks = free < least_bytes and disk.f_blocks > 0 and not disk.f_flag & os.ST_RDONLY
        return f"only {free >> 20} MB are free for {folder}" if lacks else None
    return None


def is_for_want_of_room(error: OSError) -> bool:
    """A disk that is full, or a quota that is used up."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)
