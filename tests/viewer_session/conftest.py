"""A real engine at work, a terminal to look at it from, and a real sshd on loopback to come in through."""

import contextlib
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from store.reader import Reader
from store.rows import EngineStatus
from store.workspace import open_workspace
from tests.conftest import SYSTEM_PATH
from tests.fakes.commands import ROOT, kbtui

#: Whatever a loaded machine needs; nothing here waits so long when all is well.
LIMIT_S = 90.0
LEAVES_ALTERNATE_SCREEN = b"\x1b[?1049l"


def wait_for(what: str, found: Callable[[], object], limit_s: float = LIMIT_S) -> None:
    deadline_s = time.monotonic() + limit_s
    while not found():
        assert time.monotonic() < deadline_s, f"no {what} in {limit_s:.0f} s"
        select.select([], [], [], 0.05)


@dataclass
class Search:
    """A workspace with an engine at work in it."""

    workspace: Path
    run: str
    pid: int

    def engine(self) -> EngineStatus:
        with Reader(open_workspace(self.workspace)) as reader:
            status = reader.engine()
        assert status is not None
        return status

    def goes_on(self) -> None:
        """The same engine holds the workspace, and beats again from now on."""
        now = self.engine()
        assert (now.pid, now.alive, now.run) == (self.pid, True, self.run)
        wait_for("heartbeat", lambda: (beat := self.engine()).wall_s > now.wall_s and beat.pid == self.pid)

    def viewers(self) -> list[int]:
        """Processes of viewers on this workspace, watchers aside."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                words = (path / "cmdline").read_bytes().split(b"\0")
                ours = b"attach" in words and str(self.workspace).encode() in words
                if ours and b"kbtui" in words[2:3] and (path / "comm").read_text().strip() != "term-guard":
                    found.append(int(path.name))
        return found


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Search]:
    workspace = tmp_path_factory.mktemp("session") / "runs"
    words = ("run", "softmax", "--detach", "--unvetted", "--device", "model:a100", "--budget", "1h")
    started = kbtui(*words, "-w", workspace)
    assert started.returncode == 0, started.stderr
    with Reader(open_workspace(workspace)) as reader:
        engine = reader.engine()
    assert engine is not None
    yield Search(workspace, engine.run, engine.pid)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(engine.pid, signal.SIGKILL)


class Terminal:
    """A command on a pseudo-terminal of 120x40."""

    def __init__(self, words: list[str]) -> None:
        self.received = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            environment = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), "KBTUI_REFRESH_HZ": "4"}
            environment.pop("NO_COLOR", None)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
            signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as after a login, even where nohup runs the tests
            os.execvpe(words[0], words, environment)
        os.set_inheritable(self.fd, False)  # one opened later, holding this, would keep it from closing

    def until(self, pattern: bytes, since: int = 0, limit_s: float = LIMIT_S) -> int:
        """Read until the pattern has come; returns where it ends."""
        wanted, deadline_s = re.compile(pattern), time.monotonic() + limit_s
        while (found := wanted.search(self.received, since)) is None:
            left_s = deadline_s - time.monotonic()
            assert left_s > 0, f"no {pattern!r} in {limit_s:.0f} s; last came {self.received[-1500:]!r}"
            self._read(left_s)
        return found.end()

    def until_closed(self, limit_s: float = LIMIT_S) -> None:
        deadline_s = time.monotonic() + limit_s
        with contextlib.suppress(OSError):
            while True:
                assert time.monotonic() < deadline_s
                if self._read(deadline_s - time.monotonic()) == b"":
                    return

    def _read(self, for_s: float) -> bytes | None:
        if not select.select([self.fd], [], [], max(for_s, 0))[0]:
            return None
        chunk = os.read(self.fd, 65536)
        self.received += chunk
        return chunk

    def write(self, keys: bytes) -> None:
        os.write(self.fd, keys)

    def is_sane(self) -> bool:
        """Whole lines, and what is typed is seen."""
        modes = termios.tcgetattr(self.fd)[3]
        return bool(modes & termios.ICANON and modes & termios.ECHO)

    def close(self) -> None:
        """As when its window is closed."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def end(self) -> None:
        self.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def open_terminal(*words: str) -> Terminal:
        opened.append(Terminal(list(words)))
        return opened[-1]

    yield open_terminal
    for one in opened:
        one.end()


def viewer_words(search: Search) -> list[str]:
    return [sys.executable, "-m", "kbtui", "attach", search.run, "--workspace", str(search.workspace)]


@dataclass
class Remote:
    """An sshd on loopback that lets one key in."""

    port: int
    folder: Path

    def words(self, command: str) -> list[str]:
        """The client's command line for a command there, in a terminal."""
        quiet = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"]
        key = ["-F", "none", "-i", str(self.folder / "user"), "-o", "IdentitiesOnly=yes", "-p", str(self.port)]
        return ["ssh", "-tt", *quiet, *key, "127.0.0.1", command]


@pytest.fixture(scope="session")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remote]:
    folder = tmp_path_factory.mktemp("sshd")
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
    shutil.copy(folder / "user.pub", folder / "authorized_keys")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized_keys\n"
        "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nPidFile none\n"
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # as root sshd wants its own empty folder
    sshd = shutil.which("sshd", path=SYSTEM_PATH)
    assert sshd is not None
    with (folder / "log").open("wb") as log:
        daemon = subprocess.Popen([sshd, "-D", "-e", "-f", folder / "config"], stderr=log, start_new_session=True)
    there = Remote(port, folder)
    try:
        wait_for("sshd", lambda: _answers(port), 20.0)
        yield there
    finally:
        daemon.kill()
        daemon.wait()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
