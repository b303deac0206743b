import os
import sqlite3
from contextlib import closing

import pytest

from kbtui.errors import EngineError
from store import index, opening
from store.index import open_index
from store.opening import open_for_reading


def version_of(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA user_version").fetchone()[0]


def test_a_migration_leads_from_each_version_to_the_next():
    assert sorted(index.MIGRATIONS) == list(range(1, opening.VERSION))


@pytest.mark.parametrize("name", [b"a?b", b"a%20b", b"a#b", b"a b", "à".encode(), b"\xff"], ids=ascii)
def test_wherever_it_lies_those_who_look_see_what_was_written(tmp_path, name):
    folder = tmp_path / "runs" / os.fsdecode(name)
    folder.mkdir(parents=True)
    engine = open_index(folder / "index.sqlite")
    with engine.begin() as connection:
        connection.exec_driver_sql("INSERT INTO landmark (run, seq) VALUES ('softmax-1', 3)")
    engine.dispose()
    with closing(open_for_reading(folder / "index.sqlite")) as connection:
        assert connection.execute("SELECT seq FROM landmark").fetchone()["seq"] == 3
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_fresh_index_has_the_latest_version_and_writes_ahead(workspace):
    engine = open_index(workspace.index)
    with engine.begin() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
    engine.dispose()
    assert version_of(workspace.index) == opening.VERSION


def test_older_index_is_migrated_and_the_old_file_kept(workspace, monkeypatch):
    open_index(workspace.index).dispose()

    def add_column(connection):
        connection.exec_driver_sql("ALTER TABLE run ADD COLUMN mood TEXT")

    old = opening.VERSION
    monkeypatch.setattr(index, "MIGRATIONS", {old: add_column})
    monkeypatch.setattr(opening, "VERSION", old + 1)
    with pytest.raises(EngineError, match=rf"has index version {old}, this kbtui reads {old + 1}; run `kbtui reindex`"):
        open_for_reading(workspace.index)
    open_index(workspace.index).dispose()
    with closing(sqlite3.connect(workspace.index)) as connection:
        assert "mood" in [column[1] for column in connection.execute("PRAGMA table_info(run)")]
    assert (version_of(workspace.index), version_of(f"{workspace.index}.v{old}")) == (old + 1, old)


def test_index_of_a_newer_version_is_left_alone(workspace):
    open_index(workspace.index).dispose()
    with closing(sqlite3.connect(workspace.index)) as connection:
        connection.execute("PRAGMA user_version=99")
    with pytest.raises(EngineError, match=r"written by a newer kbtui \(index version 99\); update kbtui"):
        open_index(workspace.index)
    assert version_of(workspace.index) == 99


def test_two_writers_take_turns(workspace):
    first, second = open_index(workspace.index), open_index(workspace.index)
    with first.begin() as connection:
        connection.exec_driver_sql("SELECT count(*) FROM run")  # a deferred transaction would fail when it upgrades
        with closing(sqlite3.connect(workspace.index, timeout=0)) as other, pytest.raises(sqlite3.OperationalError):
            other.execute("BEGIN IMMEDIATE")
    with second.begin() as connection:
        connection.exec_driver_sql("DELETE FROM run")
    first.dispose()
    second.dispose()
