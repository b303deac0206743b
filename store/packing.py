"""Effects: loose objects into packs, in git processes of low priority. Never while something is timed.

At the end of a run ``pack`` merges packs as well. During a long one a ``Packer`` gathers the loose objects: its process
stands still while it is held, and dies with the engine. Neither asks the user's gc settings, or changes them.
"""

import ctypes
import logging
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from store.git_process import isolated_environment, run_git
from store.workspace import Workspace

#: Loose objects below this many are not worth a pack.
WORTH_PACKING = 2_000
#: During a run each pack costs a process: fewer and larger ones.
WORTH_A_PROCESS = 10_000
#: All that branches reach and no pack holds.
_OPTIONS = ("--all", "--unpacked", "--incremental", "--local", "--non-empty", "--threads=1", "-q")
_LOWEST = ("nice", "-n", "19")
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)

_log = logging.getLogger(__name__)


def loose_objects(workspace: Workspace) -> int:
    """About how many there are: one of the 256 folders counted, as git itself estimates it."""
    try:
        return 256 * sum(1 for _ in os.scandir(workspace.git_dir / "objects" / "17"))
    except FileNotFoundError:
        return 0


def pack(workspace: Workspace) -> bool:
    """Pack what branches reach, a few packs at most. False where it gains nothing, or the repository is the user's.

    Safe beside a running engine: objects not reachable yet stay loose, and readers find packed ones through git.
    """
    if not workspace.own_repository or loose_objects(workspace) < WORTH_PACKING:
        return False
    run_git("repack", "-d", "-l", "-q", "--geometric=2", git_dir=workspace.git_dir, nice=True)
    return True


class Packer:
    """Packs beside one engine, a step at a time: ``consider`` it often, and hold it while something is timed.

    Where git fails, it says so in the log once and packs no more: a repository left loose is none the worse.
    """

    def __init__(self, workspace: Workspace, worth: int | None = None) -> None:
        self._git_dir = workspace.git_dir
        self._workspace = workspace
        self._worth = WORTH_A_PROCESS if worth is None else worth
        self._floor = 0
        self._off = not workspace.own_repository
        self._process: subprocess.Popen[bytes] | None = None
        self._left: list[tuple[str, ...]] = []
        self.n_packs = 0

    def consider(self) -> None:
        """Go on to the next step where the last has ended; begin where enough has gathered. Costs microseconds."""
        if self._is_running() or self._off:
            return
        if self._left:
            self._start(self._left.pop(0))
        elif loose_objects(self._workspace) >= self._floor + self._worth:
            base = str(self._git_dir / "objects" / "pack" / "pack")
            self._left = [("prune-packed", "--quiet")]
            self._start(("pack-objects", *_OPTIONS, base))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Its process is stopped on entering, and goes on after: a pack of thousands of objects takes seconds."""
        process = self._process if self._is_running() else None
        if process is not None:
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        try:
            yield
        finally:
            if process is not None:
                process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End it at once: what it leaves unfinished is swept up when the workspace is opened next."""
        self._off = True
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _is_running(self) -> bool:
        if self._process is None:
            return False
        code = self._process.poll()
        if code is None:
            return True
        self._process = None
        if code != 0:
            self._give_up(f"git ended with {code}")
        elif not self._left:
            self.n_packs += 1
            self._floor = loose_objects(self._workspace)  # what no branch reaches yet stays loose
        return False

    def _start(self, arguments: tuple[str, ...]) -> None:
        try:
            self._process = subprocess.Popen(
                [*_LOWEST, "git", f"--git-dir={self._git_dir}", *arguments],
                env=isolated_environment(),
                stdin=subprocess.DEVNULL,  # no revisions beside --all
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # the terminal's Ctrl-C is the engine's to handle
                preexec_fn=_die_with_parent,
            )
        except OSError as error:
            self._give_up(str(error))

    def _give_up(self, why: str) -> None:
        _log.warning("no more packing in this run: %s", why)
        self._off, self._left = True, []


def _die_with_parent() -> None:
    """In the child: git runs no second process for these two commands, so nothing outlives a killed engine."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
