"""What viewers see, while the engine writes."""

import os
import threading

import pytest

from kbtui.domain.event import CommandAccepted, CommandKind, RunResumed
from kbtui.errors import EngineError, UsageError
from store.reader import Reader
from store.record import create_run, open_run
from store.rows import RunStatus
from store.workspace import EngineLock


def test_state_is_the_fold_of_the_events(told):
    workspace, run, commits = told
    with Reader(workspace) as reader:
        state = reader.state(run)
        assert {name: tried.commit for name, tried in state.tried.items()} == {
            f"c000{n}": oid for n, oid in commits.items()
        }
        assert state.seq == 16
        assert reader.state(run) is state
        assert reader.source(commits[1]).startswith("line_0 = 0")
        with pytest.raises(UsageError, match="no run 'nope'"):
            reader.state("nope")


def test_list_shows_each_run_with_its_best(told):
    workspace, run, _ = told
    with Reader(workspace) as reader:
        (row,) = reader.runs()
    assert (row.run, row.problem, row.device, row.clock) == (run, "softmax", "A100-SXM4-80GB", "modelled")
    assert (row.state, row.end_reason) == (RunStatus.ENDED, "budget")
    assert (row.best_candidate, row.best_score, row.n_candidates) == ("c0004", 1.4, 4)
    assert (row.wall_s, row.gpu_s) == (8.0, 6.0)


@pytest.mark.parametrize("asked", ["runs", "envelopes", "insert_command"])
def test_an_index_damaged_under_a_reader_is_told_in_one_line(told, asked):
    workspace, run, _ = told
    given = {"runs": (), "envelopes": (run,), "insert_command": (run, CommandKind.PAUSE)}[asked]
    with Reader(workspace) as reader:
        with workspace.index.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(4096)
            file.write(b"\xff" * (size - 4096))
        with pytest.raises(EngineError, match="is damaged; run `kbtui reindex`"):
            getattr(reader, asked)(*given)


def test_status_follows_the_engine(workspace, scene):
    lock = EngineLock(workspace.lock).acquire()
    ledger = create_run(workspace, scene.run_started())
    lock.name_run(ledger.run)
    with Reader(workspace) as reader:
        assert reader.engine().activity == "starting"
        assert reader.runs()[0].state is RunStatus.SEARCHING
        ledger.append(CommandAccepted(1, CommandKind.PAUSE), 1, 0)
        assert reader.runs()[0].state is RunStatus.PAUSED
        ledger.append(CommandAccepted(2, CommandKind.RESUME), 1, 0)
        assert reader.runs()[0].state is RunStatus.SEARCHING
        ledger.beat("measuring", "c0001", 2, 3.0, 1.5)
        status = reader.engine()
        assert (status.pid, status.run, status.alive) == (os.getpid(), ledger.run, True)
        assert (status.activity, status.candidate, status.rung, status.wall_s) == ("measuring", "c0001", 2, 3.0)
        assert 0 <= status.beat_age_s < 5
        ledger.close()
        lock.release()
        assert reader.runs()[0].state is RunStatus.LOST
        assert reader.engine().alive is False


def test_resumed_run_is_no_longer_ended(told):
    workspace, run, _ = told
    with EngineLock(workspace.lock).acquire(run), Reader(workspace) as reader:
        ledger = open_run(workspace, run)
        ledger.append(RunResumed(reader.state(run).budget, "more time"), 9, 6)
        ledger.close()
        assert reader.runs()[0].state is RunStatus.SEARCHING


def test_workspace_without_runs_says_so(workspace):
    with pytest.raises(UsageError, match=r"no runs in .*; start one with `kbtui run`"):
        Reader(workspace)


def test_data_version_moves_with_each_write_and_only_then(told):
    workspace, run, _ = told
    with Reader(workspace) as reader:
        first = reader.data_version()
        reader.runs()
        assert reader.data_version() == first
        reader.insert_command(run, CommandKind.STOP)
        assert reader.data_version() != first


def test_readers_see_whole_events_in_order_while_the_engine_writes(workspace, scene):
    ledger = create_run(workspace, scene.run_started())
    written = threading.Event()
    failures: list[str] = []

    def watch():
        with Reader(workspace) as reader:
            seq = -1
            while True:
                last = written.is_set()
                for envelope in reader.envelopes(ledger.run, seq):
                    if envelope.seq != seq + 1:
                        failures.append(f"{envelope.seq} after {seq}")
                    seq = envelope.seq
                if reader.state(ledger.run).seq < seq:
                    failures.append("state behind its events")
                if last:
                    failures.extend([] if seq == 16 else [f"ended at {seq}"])
                    return
                written.wait(0.001)

    viewers = [threading.Thread(target=watch) for _ in range(3)]
    for viewer in viewers:
        viewer.start()
    scene.tell(ledger)
    written.set()
    for viewer in viewers:
        viewer.join(30)
    assert failures == []
    ledger.close()


def test_idle_viewer_does_not_keep_the_log_from_being_reset(workspace, scene):
    ledger = create_run(workspace, scene.run_started())
    with Reader(workspace) as reader:
        reader.runs()
        scene.tell(ledger)
        reader.state(ledger.run)
        with ledger._index.connect().execution_options(reading=True) as connection:
            assert connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() == (0, 0, 0)
    ledger.close()


@pytest.mark.parametrize(
    ("kind", "argument", "parent", "says"),
    [
        (CommandKind.PIN, "c0099", None, "run softmax-1 has no candidate 'c0099'; `kbtui log softmax-1` names them"),
        (CommandKind.PRUNE, "", None, "has no candidate ''"),
        (CommandKind.SUBMIT, "x = 1", "c0099", "has no candidate 'c0099'"),
        (CommandKind.BUDGET, '{"wall_s": -1}', None, "is not a budget"),
        (CommandKind.BUDGET, "ten minutes", None, "is not a budget"),
    ],
)
def test_command_that_means_nothing_is_refused_where_it_is_given(told, kind, argument, parent, says):
    workspace, run, _ = told
    with Reader(workspace) as reader:
        with pytest.raises(UsageError, match=says):
            reader.insert_command(run, kind, argument, "", parent)
        assert reader.commands(run)[-1].accepted_seq is not None
