"""A line that drops: the client is cut in mid-run, and one comes back."""

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator

import pytest

from tests.viewer_session.conftest import ROOT, viewer_words, wait_for

pytestmark = pytest.mark.program("sshd", "ssh", "ssh-keygen")
UP = rb"c0001"


def there(command: str) -> str:
    """A command with what a login shell on the other side would have set."""
    given = {name: os.environ[name] for name in ("PATH", "XDG_CONFIG_HOME", "HOME") if name in os.environ}
    words = [f"{name}={value}" for name, value in {**given, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}.items()]
    return f"env {shlex.join(words)} {command}"


def cut(client) -> None:
    """As when a laptop is closed: nothing is said to the other side."""
    os.kill(client.pid, signal.SIGKILL)
    client.close()


def test_on_a_plain_line_the_viewer_dies_with_it_and_the_engine_does_not(search, remote, terminal):
    command = there(shlex.join(viewer_words(search)))
    first = terminal(*remote.words(command))
    first.until(UP)
    (pid,) = search.viewers()
    cut(first)
    wait_for("end of the viewer", lambda: pid not in search.viewers())
    search.goes_on()
    again = terminal(*remote.words(command))
    again.until(UP)
    again.write(b"q")
    again.until(rb"the search goes on; come back with: kbtui attach")
    again.until_closed()
    search.goes_on()


@pytest.fixture
def tmux(tmp_path) -> Iterator[str]:
    """The words for a tmux server of the test's own."""
    words = ["tmux", "-f", "/dev/null", "-S", str(tmp_path / "tmux")]
    yield shlex.join(words)
    subprocess.run([*words, "kill-server"], capture_output=True, check=False)


@pytest.mark.program("tmux")
def test_inside_tmux_the_viewer_waits_where_it_was(search, remote, terminal, tmux):
    command = f"{tmux} new-session -s kb {shlex.quote(there(shlex.join(viewer_words(search))))}"
    first = terminal(*remote.words(there(command)))
    first.until(UP)
    (pid,) = search.viewers()
    first.write(b"m")
    first.until(rb"is marked")
    cut(first)
    search.goes_on()
    assert search.viewers() == [pid]
    again = terminal(*remote.words(there(f"{tmux} attach-session -t kb")))
    again.until(UP)
    beside = terminal(*remote.words(there(shlex.join(viewer_words(search)))))
    beside.until(UP)
    assert len(search.viewers()) == 2
    assert pid in search.viewers()
    beside.write(b"q")
    beside.until(rb"come back with")
    again.write(b"q")
    again.until(rb"\[exited\]")
    wait_for("end of both viewers", lambda: search.viewers() == [])
    search.goes_on()
