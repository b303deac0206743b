"""However a viewer ends, the engine does not notice and the terminal is given back."""

import os
import shlex
import signal
import subprocess

import pytest

from tests.viewer_session.conftest import LEAVES_ALTERNATE_SCREEN, viewer_words, wait_for

UP = rb"c0001"


@pytest.fixture
def seen(request, search, terminal):
    """A viewer that a shell has started, after what a test asks for, up and drawn, and its process."""
    before = getattr(request, "param", "")
    shell = terminal("sh", "-c", f"{before}{shlex.join(viewer_words(search))}; echo ended $?; exec cat")
    shell.until(UP)
    (pid,) = search.viewers()
    assert not shell.is_sane()
    return shell, pid


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGKILL], ids=lambda n: n.name)
def test_a_signal_ends_the_viewer_alone(search, seen, number):
    shell, pid = seen
    since = len(shell.received)
    os.kill(pid, number)
    shell.until(rb"ended \d+", since)
    shell.until(LEAVES_ALTERNATE_SCREEN.replace(b"[", rb"\[").replace(b"?", rb"\?"), since)
    shell.until(rb"kbtui attach softmax-1", since)
    wait_for("sane terminal", shell.is_sane, 10.0)
    shell.write(b"typed\n")
    shell.until(rb"typed\r\ntyped", since)
    search.goes_on()


# A shell that ignores the hang-up, as under nohup, waits for its viewer, which then is told of nothing.
@pytest.mark.parametrize("seen", ["", "trap '' HUP; "], ids=["heard", "ignored"], indirect=True)
def test_a_closed_terminal_ends_the_viewer_alone(search, seen):
    shell, pid = seen
    shell.close()
    wait_for("end of the viewer", lambda: pid not in search.viewers())
    search.goes_on()


def test_a_watcher_that_is_killed_takes_nothing_with_it(search, seen):
    shell, pid = seen
    children = subprocess.run(
        ["ps", "--ppid", str(pid), "-o", "pid=,comm="], capture_output=True, text=True, check=True
    )
    watchers = [int(line.split()[0]) for line in children.stdout.splitlines() if "term-guard" in line]
    assert len(watchers) == 1
    os.kill(watchers[0], signal.SIGKILL)
    since = len(shell.received)
    shell.write(b"q")
    shell.until(rb"ended 0", since)
    assert shell.is_sane()


def test_leaving_leaves_no_process_behind(search, seen):
    shell, _ = seen
    shell.write(b"q")
    shell.until(rb"ended 0")
    assert b"the search goes on" in shell.received
    assert search.viewers() == []
    search.goes_on()
