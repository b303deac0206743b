"""Effects: restricts the calling process's file access with Landlock (Linux 5.13 and later).

Numbers and structures: Linux's include/uapi/linux/landlock.h.
"""

import ctypes
import os
import stat
import struct
from collections.abc import Iterable
from pathlib import Path

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE = 1 << 4 | 1 << 5
_MAKE = 1 << 7 | 1 << 8
# Devices, sockets, pipes and symbolic links: a link would lead whoever cleans up out of the scratch directory.
_MAKE_OTHERS = 1 << 6 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_READ = _READ_FILE | _READ_DIR
_WRITE = _WRITE_FILE | _REMOVE | _MAKE | _REFER | _TRUNCATE | _IOCTL_DEV
_FOR_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_NET_TCP = 1 << 0 | 1 << 1
_SCOPE_SOCKETS, _SCOPE_SIGNALS = 1 << 0, 1 << 1


def abi() -> int:
    """The kernel's Landlock version, 0 where there is none."""
    return max(0, int(_libc().syscall(_CREATE, None, 0, 1)))


def restrict(*, read: Iterable[Path], write: Iterable[Path], execute: Iterable[Path], network: bool) -> int:
    """Allow file access beneath these paths alone, from now on; paths that do not exist are passed over.

    ``write`` includes reading; ``execute`` includes reading that path. Returns the version applied.
    Raises OSError where the kernel refuses.
    """
    version = abi()
    if version == 0:
        raise OSError("this kernel has no Landlock")
    handled = _handled(version)
    ruleset = _create(version, handled, network)
    try:
        for paths, access in ((read, _READ), (write, _READ | _WRITE), (execute, _READ | _EXECUTE)):
            for path in paths:
                _allow(ruleset, path, access & handled)
        _check(_libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
        _check(_libc().syscall(_RESTRICT, ruleset, 0), "landlock_restrict_self")
    finally:
        os.close(ruleset)
    return version


def _handled(version: int) -> int:
    access = _EXECUTE | _WRITE_FILE | _READ | _REMOVE | _MAKE | _MAKE_OTHERS
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV)):
        access |= right if version >= since else 0
    return access


def _create(version: int, handled: int, network: bool) -> int:
    fields = [handled]
    if version >= 4:
        fields.append(0 if network else _NET_TCP)
    if version >= 6:
        fields.append(_SCOPE_SIGNALS | _SCOPE_SOCKETS)
    attributes = struct.pack(f"{len(fields)}Q", *fields)
    return _check(_libc().syscall(_CREATE, attributes, len(attributes), 0), "landlock_create_ruleset")


def _allow(ruleset: int, path: Path, access: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            access &= _FOR_FILES
        rule = struct.pack("=Qi", access, fd)
        _check(_libc().syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0), f"landlock_add_rule {path}")
    finally:
        os.close(fd)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), what)
    return result
