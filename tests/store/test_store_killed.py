"""A process that dies between git and SQLite leaves a run that opens as if nothing had happened."""

import sqlite3
from contextlib import closing

import pytest

from kbtui.errors import UsageError
from store import reindex as store_reindex
from store.reader import Reader
from store.record import create_run, open_run
from store.workspace import EngineLock, create_workspace

STEPS = ("artifacts", "objects", "ref", "rows", "index")


def rows(workspace):
    """Everything the ledger can restore, table by table."""
    with closing(sqlite3.connect(workspace.index)) as connection:
        return {
            table: connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()
            for table in ("run", "event", "candidate", "artifact", "command")
        }


class KillAt:
    """Kills the process the n-th time a step is reached."""

    def __init__(self, step, n, die):
        self.step, self.left, self.die = step, n, die

    def __call__(self, step):
        self.left -= step == self.step
        if self.left == 0:
            self.die()


@pytest.fixture
def undisturbed(tmp_path, scene):
    workspace = create_workspace(tmp_path / "undisturbed")
    ledger = create_run(workspace, scene.run_started(), now=scene.Ticking())
    scene.tell(ledger)
    ledger.close()
    return workspace


def resume(ledger, scene):
    """Do again what the ledger has not: appends are counted off against the events that are there."""
    done = len(list(ledger.events())) - 1
    append = ledger.append

    def append_missing(*args, **kwargs):
        nonlocal done
        done -= 1
        return None if done >= 0 else append(*args, **kwargs)

    ledger.append = append_missing
    scene.tell(ledger)


@pytest.mark.parametrize("nth", [2, 3, 9])
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_a_step_and_resumed_is_the_undisturbed_run(step, nth, workspace, undisturbed, scene, in_child, git):
    clock = scene.Ticking()

    def engine():
        with EngineLock(workspace.lock).acquire():
            scene.tell(create_run(workspace, scene.run_started(), now=clock, checkpoint=KillAt(step, nth, scene.die)))

    assert in_child(engine) == 9
    with EngineLock(workspace.lock).acquire():
        ledger = open_run(workspace, "softmax-1", now=clock)
        survived = len(list(ledger.events()))
        assert survived == nth if step in ("ref", "rows", "index") else survived == nth - 1
        for _ in range(survived + 1):  # the clock of an undisturbed run, which also dates the README
            clock()
        resume(ledger, scene)
        ledger.close()
    assert rows(workspace) == rows(undisturbed)
    assert git(workspace.git_dir, "rev-parse", "runs/softmax-1") == git(
        undisturbed.git_dir, "rev-parse", "runs/softmax-1"
    )
    git(workspace.git_dir, "fsck", "--strict", "--no-dangling")
    with closing(sqlite3.connect(workspace.index)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_killed_before_its_first_event_is_indexed_the_run_is_listed_with_the_next(workspace, scene, in_child):
    def engine():
        create_run(workspace, scene.run_started(), checkpoint=KillAt("ref", 1, scene.die))

    assert in_child(engine) == 9
    second = create_run(workspace, scene.run_started())
    assert second.run == "softmax-2"
    second.close()
    assert [row[0] for row in rows(workspace)["run"]] == ["softmax-1", "softmax-2"]


def test_index_that_holds_more_than_the_ledger_follows_the_ledger(told, git):
    workspace, run, _ = told
    before = rows(workspace)
    git(workspace.git_dir, "update-ref", f"refs/heads/runs/{run}", f"runs/{run}~1")
    ledger = open_run(workspace, run)
    assert len(list(ledger.events())) == len(before["event"]) - 1
    ledger.close()
    assert rows(workspace)["event"] == before["event"][:-1]
    assert rows(workspace)["run"][0] != before["run"][0]


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_killed_while_the_index_is_rebuilt_every_run_is_there_at_the_next_opening(
    nth, workspace, scene, in_child, monkeypatch
):
    for _ in range(3):
        ledger = create_run(workspace, scene.run_started())
        scene.tell(ledger)
        ledger.close()
    before = rows(workspace)
    workspace.index.unlink()
    killed_at = KillAt("run", nth, scene.die)
    whole = store_reindex.rebuild_run

    def rebuild_run(engine, branch):
        killed_at("run")
        whole(engine, branch)

    with monkeypatch.context() as patched:
        patched.setattr(store_reindex, "rebuild_run", rebuild_run)
        assert in_child(lambda: open_run(workspace, "softmax-3")) == 9
    open_run(workspace, "softmax-3").close()
    assert rows(workspace) == before


def test_killed_between_making_the_index_and_its_tables_it_is_made_at_the_next_opening(told):
    workspace, run, _ = told
    before = rows(workspace)
    workspace.index.write_bytes(b"")
    with pytest.raises(UsageError, match="no runs in"):
        Reader(workspace)
    open_run(workspace, run).close()
    assert rows(workspace) == before
