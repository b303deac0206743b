"""Where each candidate stands, beside the fold of the run's events: the two say the same, live, rebuilt or migrated."""

import sqlite3
from collections import Counter
from contextlib import closing

import pytest

from kbtui.domain.event import CommandAccepted, CommandKind
from kbtui.scheduler.state import RunState
from store import index as store_index
from store.reader import Reader
from store.record import open_run
from store.reindex import reindex
from store.workspace import EngineLock


def ask(path, query):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def stand(workspace):
    return ask(workspace.index, "SELECT candidate, waiting_at, rung, score FROM standing ORDER BY candidate")


def folded(state: RunState):
    tried = sorted(state.tried.values(), key=lambda t: t.candidate.id)
    return [(t.candidate.id, t.waiting_at, t.last.rung if t.last else 0, t.score) for t in tried]


def steer(workspace, run, *commands):
    with EngineLock(workspace.lock).acquire(run):
        ledger = open_run(workspace, run)
        for number, (kind, candidate) in enumerate(commands, start=50):
            ledger.append(CommandAccepted(number, kind, candidate), 9.0, 6.0)
        ledger.close()


PROMOTE_AND_PRUNE = ((CommandKind.PROMOTE, "c0002"), (CommandKind.PROMOTE, "c0003"), (CommandKind.PRUNE, "c0003"))


@pytest.mark.parametrize("commands", [(), PROMOTE_AND_PRUNE], ids=["alone", "steered"])
def test_standings_are_what_the_fold_says(told, commands):
    workspace, run, _ = told
    steer(workspace, run, *commands)
    with Reader(workspace) as reader:
        state = reader.state(run)
        assert stand(workspace) == folded(state)
        decided = Counter((r.rung, str(r.decision)) for t in state.tried.values() for r in t.results.values())
        tallied = ask(workspace.index, "SELECT rung, decision, n FROM tally")
        assert {(rung, decision): n for rung, decision, n in tallied} == decided
        spent = ask(workspace.index, "SELECT rung, sum(wall_s), sum(gpu_s) FROM tally GROUP BY rung")
        assert {rung: (wall, gpu) for rung, wall, gpu in spent} == pytest.approx(
            {rung: (spend.wall_s, spend.gpu_s) for rung, spend in state.spend.items()}
        )


def test_a_rebuild_brings_the_same(told):
    workspace, run, _ = told
    steer(workspace, run, *PROMOTE_AND_PRUNE)
    tables = ("standing", "tally", "landmark")
    before = [sorted(ask(workspace.index, f"SELECT * FROM {table}")) for table in tables]
    reindex(workspace)
    assert [sorted(ask(workspace.index, f"SELECT * FROM {table}")) for table in tables] == before


def test_an_index_of_version_1_gets_them_from_its_events(told):
    workspace, run, _ = told
    steer(workspace, run, *PROMOTE_AND_PRUNE)
    tables = ("standing", "tally", "landmark")
    before = [sorted(ask(workspace.index, f"SELECT * FROM {table}")) for table in tables]
    schema = ask(workspace.index, "SELECT name FROM sqlite_master WHERE type = 'index' ORDER BY name")
    with closing(sqlite3.connect(workspace.index)) as connection:
        connection.executescript(
            "DROP TABLE standing; DROP TABLE tally; DROP TABLE landmark;"
            "DROP INDEX event_of_candidate; DROP INDEX artifact_of_candidate; PRAGMA user_version = 1;"
        )
    store_index.open_index(workspace.index).dispose()
    assert [sorted(ask(workspace.index, f"SELECT * FROM {table}")) for table in tables] == before
    assert ask(workspace.index, "SELECT name FROM sqlite_master WHERE type = 'index' ORDER BY name") == schema
