"""Write docs/walk.txt: a walk through one search over ssh, as a terminal showed it. python docs/walk.py [FILE]

A real sshd on loopback (a key and a port of its own), and tmux as the terminal whose text is captured: start on one
connection, watch, pin, prune, promote, hint, budget, diff, drop the line, attach from another, see the champion, stop,
browse with git. Effects: processes, a
workspace in the temporary folder, the file.
"""

import os
import platform
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

PAGE = Path(__file__).with_name("walk.txt")
COLUMNS, ROWS = 120, 36
#: Patience for each step: a search needs time to find something to show.
LIMIT_S = 420.0
KBTUI = Path(sys.executable).with_name("kbtui")


class Walk:
    """Connections to one machine, each in a terminal of its own, and what is written about them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, folder / "home"
        self.home.mkdir()
        self.port = self._sshd()
        self.said: list[str] = []

    def _sshd(self) -> int:
        for name in ("host", "user"):
            make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)]
            subprocess.run(make, check=True)
        shutil.copy(self.folder / "user.pub", self.folder / "keys")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        (self.folder / "sshd").write_text(
            f"Port {port}\nListenAddress 127.0.0.1\nHostKey {self.folder}/host\nAuthorizedKeysFile {self.folder}/keys\n"
            "StrictModes no\nUsePAM no\nPermitRootLogin yes\nPidFile none\n"
        )
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
        if sshd is None:
            raise SystemExit("sshd is missing; on Debian: apt-get install openssh-server")
        self.daemon = subprocess.Popen([sshd, "-D", "-f", str(self.folder / "sshd")], stderr=subprocess.DEVNULL)
        time.sleep(1.0)
        return port

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-f", "/dev/null", "-S", str(self.folder / "tmux"), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def connect(self, name: str) -> None:
        """A terminal with a shell on the other side."""
        options = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o IdentitiesOnly=yes"
        login = f"ssh -tt -F none {options} -i {self.folder}/user -p {self.port} 127.0.0.1"
        given = f"PATH={KBTUI.parent}:/usr/bin:/bin XDG_CONFIG_HOME={self.home} PS1='gpu-box$ '"
        shell = f"cd {self.home} && env {given} TERM=tmux-256color bash --norc --noprofile -i"
        size = ("-x", str(COLUMNS), "-y", str(ROWS))
        self.tmux("new-session", "-d", "-s", name, *size, f"{login} {shlex.quote(shell)}; exec sh")
        self.wait(name, r"gpu-box\$")

    def keys(self, name: str, *keys: str) -> None:
        self.tmux("send-keys", "-t", name, *keys)

    def shown(self, name: str) -> str:
        return self.tmux("capture-pane", "-p", "-t", name).rstrip()

    def wait(self, name: str, pattern: str, absent: bool = False) -> str:
        deadline_s = time.monotonic() + LIMIT_S
        while bool(re.search(pattern, screen := self.shown(name))) is absent:
            if time.monotonic() > deadline_s:
                raise SystemExit(f"{pattern!r} {'stayed' if absent else 'did not come'} in {LIMIT_S:.0f} s:\n{screen}")
            time.sleep(0.2)
        return screen

    def note(self, title: str, screen: str) -> None:
        print(title, flush=True)
        self.said += [f"== {title}", "", screen, "", ""]

    def step(self, title: str, name: str, keys: tuple[str, ...], pattern: str) -> None:
        self.keys(name, *keys)
        self.note(title, self.wait(name, pattern))

    def cut(self, name: str) -> None:
        """The client dies as when a laptop is closed."""
        shell = self.tmux("list-panes", "-t", name, "-F", "#{pane_pid}").strip()
        clients = subprocess.run(["pgrep", "-P", shell, "ssh"], capture_output=True, text=True, check=True).stdout
        for pid in clients.split():
            os.kill(int(pid), signal.SIGKILL)

    def close(self) -> None:
        subprocess.run(["tmux", "-S", str(self.folder / "tmux"), "kill-server"], capture_output=True, check=False)
        self.daemon.terminate()
        self.daemon.wait()


def walk(here: Walk) -> None:
    here.connect("first")
    start = "kbtui run softmax --device model:a100 --budget 30m"
    here.step(f"On the first connection: {start}", "first", (start, "Enter"), r"c000[6-9]|c00[1-9]\d")
    here.note("Watch: candidates climb the ladder", here.wait("first", r"seen(.|\n)*rejected|pruned|promoted"))
    here.step("Pin what waits (P)", "first", ("Home", "Down", "P"), r"asked: pin c0002")
    here.keys("first", "Down", "x")
    here.note("Prune another (x asks first)", here.wait("first", r"Prune c0003\?"))
    here.step("Yes (y): asked, and done once the engine gets to it", "first", ("y",), r"asked: prune c0003")
    here.keys("first", "b")
    here.wait("first", r"[Bb]udget")
    here.step("Ten minutes more (b)", "first", ("+10m", "Enter"), r"asked: budget|of 40:00")
    hint = "try two rows a program with evict-first loads"
    here.keys("first", "h")
    here.wait("first", "Give the search a hint")
    here.step("Give it a hint (h)", "first", (hint, "Enter"), r"asked: hint")
    here.keys("first", "4", "f")
    here.step("See what a candidate changed (4, f)", "first", ("d",), r"c\d+ .*→ c\d+")
    here.cut("first")
    here.note("The line drops", here.wait("first", r"\$ ?$|Killed|closed|#"))
    here.connect("second")
    here.step("On another connection: kbtui status", "second", ("kbtui status", "Enter"), r"engine pid \d+")
    here.step("kbtui attach", "second", ("kbtui attach", "Enter"), r"1 Rungs")
    here.note("It has a champion, confirmed in fresh processes", here.wait("second", r"★ c\d+"))
    here.keys("second", "End")
    here.step("Send one on that was pruned (+)", "second", ("+",), r"asked: promote|cannot be promoted")
    here.keys("second", "S")
    here.step("Stop it (S)", "second", (), r"Stop the search")
    here.keys("second", "y")
    here.note("It has ended; what it found stays", here.wait("second", r"ended: stopped"))
    here.step("Leave (q)", "second", ("q",), r"gpu-box\$ ?$")
    git = "git --git-dir .kbtui/kernels.git"
    here.keys("second", "clear", "Enter")
    story = f"{git} log --first-parent --oneline runs/softmax-1 | cut -c1-118 | head -14"
    here.step("Browse with git: the story", "second", (story, "Enter"), r"[0-9a-f]{7} (.|\n)*gpu-box\$ ?$")
    here.keys("second", "clear", "Enter")
    lines = f"{git} blame -s runs/softmax-1 -- kernel.py | head -20 | cut -c1-118"
    here.step("Which candidate each line came from", "second", (lines, "Enter"), r"[0-9a-f]{7} (.|\n)*gpu-box\$ ?$")


def page(steps: Callable[[Walk], None]) -> str:
    with tempfile.TemporaryDirectory(prefix="kbtui-walk-") as folder:
        here = Walk(Path(folder))
        try:
            steps(here)
        finally:
            subprocess.run([KBTUI, "stop"], cwd=here.home, capture_output=True, check=False)
            here.close()
    at = datetime.now(UTC).isoformat(timespec="minutes")
    head = (
        f"A walk over ssh, captured from tmux at {COLUMNS}x{ROWS} by `python docs/walk.py`\n{at}, {platform.platform()}"
    )
    return "\n".join([head, f"Times are modelled: this machine has no GPU ({os.cpu_count()} cores).", "", *here.said])


if __name__ == "__main__":
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE
    out.write_text(page(walk))
    print(out)
