"""The index can be thrown away."""

import shutil
import sqlite3
from contextlib import closing

import pytest

from kbtui.domain.event import CommandKind
from kbtui.errors import EngineError, UsageError
from store.reader import Reader
from store.record import create_run, open_run
from store.reindex import reindex
from store.workspace import EngineLock, Workspace, create_workspace


def rows(workspace: Workspace):
    with closing(sqlite3.connect(workspace.index)) as connection:
        return {
            table: connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3").fetchall()
            for table in ("run", "event", "candidate", "artifact", "command")
        }


def unlink_index(workspace: Workspace) -> None:
    for suffix in ("", "-wal", "-shm"):
        workspace.index.with_name(workspace.index.name + suffix).unlink(missing_ok=True)


@pytest.fixture
def two_runs(workspace, scene):
    for _ in range(2):
        ledger = create_run(workspace, scene.run_started())
        scene.tell(ledger)
        ledger.close()
    return workspace


def test_rebuilt_index_equals_the_lost_one_row_by_row(two_runs):
    before = rows(two_runs)
    unlink_index(two_runs)
    report = reindex(two_runs)
    assert rows(two_runs) == before
    assert all(before.values())
    assert (report.runs, report.n_events) == (("softmax-1", "softmax-2"), len(before["event"]))
    assert (report.missing, report.refused, report.set_aside) == ((), (), None)


def test_clone_on_another_machine_gives_the_same_and_lists_what_is_missing(two_runs, tmp_path, git):
    elsewhere = create_workspace(tmp_path / "elsewhere")
    shutil.rmtree(elsewhere.git_dir)
    git(tmp_path, "clone", "--quiet", "--bare", str(two_runs.git_dir), str(elsewhere.git_dir))
    report = reindex(elsewhere)
    assert rows(elsewhere) == rows(two_runs)
    assert len(report.missing) == len(rows(two_runs)["artifact"])
    assert {(m.run, m.artifact.name) for m in report.missing} >= {
        ("softmax-1", "prompt.txt"),
        ("softmax-2", "samples.csv"),
    }
    with Reader(elsewhere) as reader, pytest.raises(UsageError, match=r"artifact .* is not in .*; copy it from"):
        reader.artifact(report.missing[0].artifact.sha256)


def test_commands_not_taken_yet_and_heartbeats_survive_a_rebuild(two_runs):
    ledger = open_run(two_runs, "softmax-2")
    ledger.beat("measuring", None, None, 99.0, 1.0)
    ledger.close()
    with Reader(two_runs) as reader:
        number = reader.insert_command("softmax-2", CommandKind.HINT, "use exp2")
    before = rows(two_runs)
    reindex(two_runs)
    assert rows(two_runs) == before
    ledger = open_run(two_runs, "softmax-2")
    assert [(c.command_id, c.argument) for c in ledger.take_commands()] == [(number, "use exp2")]
    assert ledger.spent().wall_s == 99.0
    ledger.close()


@pytest.mark.parametrize("damage", [b"not a database at all" * 300, None], ids=["overwritten", "page"])
def test_damaged_index_is_set_aside_and_rebuilt(two_runs, damage):
    before = rows(two_runs)
    content = bytearray(two_runs.index.read_bytes())
    if damage is None:
        content[4096 * 3 : 4096 * 12] = b"\xa5" * 4096 * 9
    unlink_index(two_runs)
    two_runs.index.write_bytes(damage or bytes(content))
    report = reindex(two_runs)
    assert report.set_aside is not None
    assert report.set_aside.read_bytes() == (damage or bytes(content))
    assert rows(two_runs) == before


def test_engine_opens_a_run_over_a_damaged_index(two_runs):
    before = rows(two_runs)
    unlink_index(two_runs)
    two_runs.index.write_bytes(b"garbage" * 1000)
    with pytest.raises(EngineError, match="is damaged; run `kbtui reindex`"):
        Reader(two_runs)
    open_run(two_runs, "softmax-1").close()
    assert rows(two_runs) == before


def test_foreign_commit_is_named_and_what_came_before_it_is_indexed(two_runs, git):
    before = rows(two_runs)
    who = ["-c", "user.name=Eve", "-c", "user.email=e@x"]
    foreign = git(
        two_runs.git_dir, *who, "commit-tree", "-p", "runs/softmax-1", "-m", "x", "runs/softmax-1^{tree}"
    ).strip()
    git(two_runs.git_dir, "update-ref", "refs/heads/runs/softmax-1", foreign)
    unlink_index(two_runs)
    (refused,) = reindex(two_runs).refused
    assert foreign[:12] in refused
    assert rows(two_runs) == before


def test_run_whose_branch_was_deleted_leaves_the_index(two_runs, git):
    git(two_runs.git_dir, "branch", "-D", "runs/softmax-1")
    assert reindex(two_runs).runs == ("softmax-2",)
    assert {row[0] for row in rows(two_runs)["event"]} == {"softmax-2"}


def test_rebuild_is_refused_while_an_engine_is_at_work(two_runs):
    with EngineLock(two_runs.lock).acquire("softmax-2"), pytest.raises(EngineError, match="has an engine already"):
        reindex(two_runs)


def test_packed_repository_is_read_like_a_loose_one(two_runs, git):
    before = rows(two_runs)
    git(two_runs.git_dir, "gc", "--quiet")
    unlink_index(two_runs)
    reindex(two_runs)
    assert rows(two_runs) == before
