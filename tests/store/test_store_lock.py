"""The engine's lock, between real processes."""

import os
import signal
import subprocess
import sys

import pytest

from kbtui.errors import EngineError
from store.lock import EngineLock, lock_holder

HOLD = "import sys; from pathlib import Path; from store.lock import EngineLock; l = EngineLock(Path(sys.argv[1]))"
HOLD += "; l.acquire('softmax-7'); print('held', flush=True); sys.stdin.read()"


@pytest.fixture
def other_engine(workspace):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(workspace.lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def test_second_engine_is_refused_and_told_of_the_first(workspace, other_engine):
    with pytest.raises(EngineError, match=rf"pid {other_engine.pid}, run softmax-7, since 2.*`kbtui attach`"):
        EngineLock(workspace.lock).acquire()


def test_reader_sees_who_holds_it(workspace, other_engine):
    holder = lock_holder(workspace.lock)
    assert (holder.pid, holder.run) == (other_engine.pid, "softmax-7")


def test_lock_of_a_killed_engine_is_taken_over(workspace, other_engine):
    os.kill(other_engine.pid, signal.SIGKILL)
    other_engine.wait()
    assert lock_holder(workspace.lock) is None
    with EngineLock(workspace.lock).acquire("softmax-8"):
        assert lock_holder(workspace.lock).pid == os.getpid()


def test_lock_names_the_run_once_there_is_one(workspace):
    with EngineLock(workspace.lock) as lock:
        assert lock_holder(workspace.lock).run == ""
        lock.name_run("a-long-run-name-1")
        lock.name_run("b-1")
        assert lock_holder(workspace.lock).run == "b-1"
    assert lock_holder(workspace.lock) is None


def test_nobody_holds_a_lock_that_was_never_made(tmp_path):
    assert lock_holder(tmp_path / "engine.lock") is None


def test_child_started_by_the_engine_does_not_keep_the_lock(workspace):
    lock = EngineLock(workspace.lock).acquire()
    child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    lock.release()
    assert lock_holder(workspace.lock) is None
    child.communicate()
