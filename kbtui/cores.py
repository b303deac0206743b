"""How many CPU cores this process may use. Effects: reads its affinity and its cgroups' quotas.

A container or a batch system leaves a process fewer cores than the machine has, by either of the two.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_CGROUPS, _OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def cores() -> int:
    """Whole cores to share work out over, one at least."""
    return max(1, int(usable_cores()))


def usable_cores(cgroups: Path = _CGROUPS, own: Path = _OWN) -> float:
    """The cores that affinity names, or fewer where a quota allows less time than they have, e.g. 1.5.

    Args:
        cgroups: where the cgroup file systems are mounted.
        own: the file that names this process's cgroups, one a line: number, controllers and path between colons.
    """
    return min([float(_allowed()), *_quotas(cgroups, own)])


def _allowed() -> int:
    if sys.version_info >= (3, 13):  # who sets PYTHON_CPU_COUNT is heard too
        return os.process_cpu_count() or 1
    return len(os.sched_getaffinity(0))


def _quotas(cgroups: Path, own: Path) -> Iterator[float]:
    """Cores' worth of time that each cgroup above this process allows; nothing for one without a limit."""
    for folder in _folders(cgroups, own):
        with suppress(OSError, ValueError, ZeroDivisionError):
            quota, period = _quota(folder)
            if quota > 0:
                yield quota / period


def _quota(folder: Path) -> tuple[int, int]:
    """(microseconds of CPU time, in so many microseconds): of version 2 or 1. Raises ValueError for version 2's max."""
    both = folder / "cpu.max"
    if both.is_file():
        quota, period = both.read_text().split()
        return int(quota), int(period)
    return int((folder / "cpu.cfs_quota_us").read_text()), int((folder / "cpu.cfs_period_us").read_text())


def _folders(cgroups: Path, own: Path) -> Iterator[Path]:
    """This process's own cgroups that may limit its time, and those above them: a limit holds for all below it."""
    with suppress(OSError, ValueError):
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "cpu" not in controllers.split(","):
                continue
            root = cgroups / controllers
            below = root / path.lstrip("/")
            yield from (folder for folder in (below, *below.parents) if folder.is_relative_to(root))
