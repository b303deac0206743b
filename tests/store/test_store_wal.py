"""Viewers that read all the time neither block the engine nor keep its write-ahead log from being emptied."""

import multiprocessing
import sqlite3
import time
from contextlib import closing

from kbtui.domain.event import ProposalsMade
from kbtui.domain.measurement import LiveSample
from store.reader import Reader
from store.record import create_run
from store.workspace import open_workspace

N_READERS = 3
N_EVENTS = 1_500
#: SQLite moves the log into the database every 1,000 pages of 4 KB; the log is reused from its beginning after that.
WAL_BOUND_BYTES = 6 << 20


def poll(root, run, ready, stop, polls):
    """A viewer that never rests."""
    with Reader(open_workspace(root)) as reader:
        n, seq = 0, -1
        while not stop.is_set():
            reader.data_version()
            reader.runs()
            seq = max([seq, *(e.seq for e in reader.envelopes(run, seq))])
            reader.engine()
            reader.live_samples(run, n)
            n += 1
            ready.set()
        polls.put((n, seq))


def test_readers_that_poll_all_the_time_do_not_pin_the_wal(workspace, scene, monkeypatch):
    monkeypatch.setattr("store.objects.ObjectStore.sync", lambda self: self._unsynced.clear())  # this is about SQLite
    ledger = create_run(workspace, scene.run_started())
    context = multiprocessing.get_context("fork")
    stop, polls = context.Event(), context.Queue()
    readies = [context.Event() for _ in range(N_READERS)]
    viewers = [
        context.Process(target=poll, args=(workspace.root, ledger.run, ready, stop, polls), daemon=True)
        for ready in readies
    ]
    for viewer in viewers:
        viewer.start()
    assert all(ready.wait(30) for ready in readies)
    wal = workspace.index.with_name("index.sqlite-wal")
    largest, slowest_s, written = 0, 0.0, 0
    for n in range(N_EVENTS):
        began_s = time.perf_counter()
        ledger.append(ProposalsMade("playbook", None, 0, 0, False, 0.1, "x" * 4000), n, 0.0)
        slowest_s = max(slowest_s, time.perf_counter() - began_s)
        written += 4000
        if n % 10 == 0:
            ledger.beat("measure", "c0001", 2, n, 0.0)
            ledger.samples(tuple(LiveSample("c0001", "first", "s", 1.0, 2.0, k, 6) for k in range(20)))
        largest = max(largest, wal.stat().st_size)
    stop.set()
    told = [polls.get(timeout=30) for _ in viewers]
    for viewer in viewers:
        viewer.join(30)
    ledger.close()
    assert all(n > 5 for n, _ in told), "the viewers hardly polled"
    assert all(seq > 0 for _, seq in told)
    assert written > WAL_BOUND_BYTES - (1 << 20), "too little was written to tell"
    assert largest < WAL_BOUND_BYTES
    assert slowest_s < 5.0, "a reader blocked the engine"
    with closing(sqlite3.connect(workspace.index)) as index:
        assert index.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_viewer_that_was_stopped_in_its_tracks_holds_no_snapshot(told):
    """Between polls a reader has no transaction open, so a suspended viewer pins nothing."""
    workspace, run, _ = told
    with Reader(workspace) as reader:
        reader.runs()
        reader.state(run)
        reader.data_version()
        with closing(sqlite3.connect(workspace.index, isolation_level=None)) as writer:
            writer.execute("UPDATE run SET paused = 1")
            busy, in_log, moved = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    assert (busy, in_log, moved) == (0, 0, 0)
