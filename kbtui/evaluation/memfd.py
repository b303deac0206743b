"""Effects: makes shared memory that two processes map and neither can resize."""

import fcntl
import os

_F_ADD_SEALS = 1033
_SEAL_SEAL, _SEAL_SHRINK, _SEAL_GROW = 1, 2, 4


def sealed_memfd(name: str, n_bytes: int) -> int:
    """A file descriptor of ``n_bytes`` zero bytes; pages cost memory only once they are written."""
    fd = os.memfd_create(name, os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.ftruncate(fd, n_bytes)
    fcntl.fcntl(fd, _F_ADD_SEALS, _SEAL_SHRINK | _SEAL_GROW | _SEAL_SEAL)
    return fd
