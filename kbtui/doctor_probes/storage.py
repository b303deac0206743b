"""git, SQLite and the workspace's file system. Effects: runs git, reads /proc, looks at the folder."""

import os
import re
import shutil
import sqlite3
from pathlib import Path

from kbtui.doctor_probes.check import Check, State
from kbtui.doctor_probes.child import output_lines
from store.filesystems import file_system_of, is_network, read_mountinfo

LEAST_GIT = (2, 31)
LEAST_SQLITE = (3, 35)
_GIB = 1 << 30


def git_check() -> Check:
    return judge_git(next(iter(output_lines(["git", "--version"])), None))


def judge_git(said: str | None) -> Check:
    """``said`` is git's first line, e.g. ``git version 2.39.5``."""
    numbers = re.search(r"(\d+)\.(\d+)", said or "")
    if said is None or numbers is None:
        return Check("git", State.FAIL, "none", "every candidate is a git commit: apt-get install git")
    if (int(numbers[1]), int(numbers[2])) < LEAST_GIT:
        return Check("git", State.WARN, said, f"{'.'.join(map(str, LEAST_GIT))} or later is what kbtui is tested with")
    return Check("git", State.OK, said.removeprefix("git version "))


def sqlite_check() -> Check:
    if sqlite3.sqlite_version_info < LEAST_SQLITE:
        return Check("sqlite", State.FAIL, sqlite3.sqlite_version, "use a Python with SQLite 3.35 or later")
    return Check("sqlite", State.OK, sqlite3.sqlite_version)


def workspace_check(workspace: Path) -> Check:
    there = next((p for p in (workspace, *workspace.parents) if p.exists()), Path("/"))
    free_bytes = shutil.disk_usage(there).free
    kind = file_system_of(str(there.resolve()), read_mountinfo())
    return judge_workspace(workspace, kind, free_bytes, os.access(there, os.W_OK))


def judge_workspace(workspace: Path, kind: str, free_bytes: int, writable: bool) -> Check:
    """The folder of runs: writable, on a local file system, with room."""
    found = f"{workspace} on {kind}, {free_bytes / _GIB:.1f} GiB free"
    if not writable:
        return Check("workspace", State.FAIL, f"{workspace} is not writable", "name another with --workspace")
    if is_network(kind):
        advice = "SQLite's locks cannot be trusted there: name a local folder with --workspace"
        return Check("workspace", State.FAIL, found, advice)
    if free_bytes < _GIB:
        return Check("workspace", State.WARN, found, "a long run may fill it")
    return Check("workspace", State.OK, found)
