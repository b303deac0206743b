"""An index of an earlier version is brought up to this one, and the old file is kept.

The machinery is tested with steps that do not exist yet, after the latest that do.
"""

import sqlite3
from contextlib import closing

import pytest

from kbtui.errors import EngineError, UsageError
from store import index as store_index
from store import opening
from store.reader import Reader
from store.record import create_run, open_run
from store.reindex import reindex

LATEST = opening.VERSION


def add_column(connection):
    connection.exec_driver_sql("ALTER TABLE run ADD COLUMN colour TEXT DEFAULT 'red'")


def fill_column(connection):
    connection.exec_driver_sql("UPDATE run SET colour = colour || ' and blue'")


def fail(connection):
    add_column(connection)
    raise sqlite3.OperationalError("no such thing")


def migrate_to(monkeypatch, *steps):
    monkeypatch.setattr(store_index, "MIGRATIONS", dict(enumerate(steps, start=LATEST)))
    monkeypatch.setattr(opening, "VERSION", LATEST + len(steps))


def ask(path, query):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def test_steps_run_in_order_from_the_version_found_and_the_old_file_is_kept(told, monkeypatch):
    workspace, run, _ = told
    events = ask(workspace.index, "SELECT * FROM event ORDER BY seq")
    migrate_to(monkeypatch, add_column, fill_column)
    open_run(workspace, run).close()
    assert ask(workspace.index, "PRAGMA user_version") == [(LATEST + 2,)]
    assert ask(workspace.index, "SELECT colour FROM run") == [("red and blue",)]
    assert ask(workspace.index, "SELECT * FROM event ORDER BY seq") == events
    kept = workspace.index.with_name(f"index.sqlite.v{LATEST}")
    assert ask(kept, "PRAGMA user_version") == [(LATEST,)]
    assert ask(kept, "SELECT * FROM event ORDER BY seq") == events
    assert "colour" not in str(ask(kept, "SELECT sql FROM sqlite_master WHERE name = 'run'"))


def test_from_a_version_in_between_only_the_later_steps_run(told, monkeypatch):
    workspace, run, _ = told
    migrate_to(monkeypatch, add_column)
    open_run(workspace, run).close()
    migrate_to(monkeypatch, add_column, fill_column)
    open_run(workspace, run).close()
    assert ask(workspace.index, "SELECT colour FROM run") == [("red and blue",)]
    assert ask(workspace.index.with_name(f"index.sqlite.v{LATEST + 1}"), "SELECT colour FROM run") == [("red",)]


def test_a_step_that_fails_leaves_the_version_that_was_there(told, monkeypatch):
    workspace, run, _ = told
    before = ask(workspace.index, "SELECT sql FROM sqlite_master ORDER BY name")
    with monkeypatch.context() as patched:
        migrate_to(patched, fail)
        with pytest.raises(UsageError, match="no such thing"):
            open_run(workspace, run)
    assert ask(workspace.index, "PRAGMA user_version") == [(LATEST,)]
    assert ask(workspace.index, "SELECT sql FROM sqlite_master ORDER BY name") == before
    open_run(workspace, run).close()


def test_killed_in_the_middle_of_a_step_it_is_done_on_the_next_opening(told, monkeypatch, in_child, scene):
    workspace, run, _ = told

    def die_half_way(connection):
        add_column(connection)
        scene.die()

    def engine():
        migrate_to(monkeypatch, die_half_way)
        open_run(workspace, run)

    assert in_child(engine) == 9
    assert ask(workspace.index, "PRAGMA user_version") == [(LATEST,)]
    migrate_to(monkeypatch, add_column)
    open_run(workspace, run).close()
    assert ask(workspace.index, "SELECT colour FROM run") == [("red",)]


def test_a_viewer_migrates_nothing_and_says_what_to_do(told, monkeypatch):
    workspace, _, _ = told
    migrate_to(monkeypatch, add_column)
    with pytest.raises(
        EngineError, match=f"index version {LATEST}, this kbtui reads {LATEST + 1}; run `kbtui reindex`"
    ):
        Reader(workspace)
    reindex(workspace)
    Reader(workspace).close()


def test_an_index_of_a_newer_version_is_left_alone(told):
    workspace, run, _ = told
    with closing(sqlite3.connect(workspace.index)) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(EngineError, match="written by a newer kbtui"):
        open_run(workspace, run)
    assert ask(workspace.index, "PRAGMA user_version") == [(99,)]


def test_an_index_whose_engine_died_while_making_it_holds_no_runs_yet_and_is_made_by_the_next(workspace, scene):
    workspace.index.touch()
    with pytest.raises(UsageError, match="no runs in"):
        Reader(workspace)
    create_run(workspace, scene.run_started()).close()
    with Reader(workspace) as reader:
        assert [row.run for row in reader.runs()] == ["softmax-1"]
