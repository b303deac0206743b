"""Effects: what viewers and the command line see of a workspace. Short reads; the engine is never blocked."""

import shutil
import sqlite3
import threading
import time
from collections.abc import Sequence
from sqlite3 import DatabaseError, OperationalError, Row

from kbtui.budget import budget_of_json
from kbtui.domain.candidate import ArtifactRef
from kbtui.domain.event import CommandKind, Envelope
from kbtui.domain.measurement import LiveSample
from kbtui.domain.overview import Totals, Window
from kbtui.errors import DiskFullError, EngineError, KbtuiError, UsageError
from kbtui.scheduler.state import RunState
from store import window
from store.artifacts import read_artifact
from store.ledger import read_source
from store.lock import lock_holder
from store.message import envelope_of_json
from store.objects import ObjectStore
from store.opening import DamagedIndexError, EmptyIndexError, asking, damage_noticed, open_for_reading
from store.rows import CommandRow, EngineStatus, RunRow, command_row, live_sample, run_row
from store.run_name import under_name
from store.workspace import Workspace

_INSERT_COMMAND = "INSERT INTO command (run, id, kind, argument, note, parent) VALUES (?, ?, ?, ?, ?, ?)"
_OF_A_CANDIDATE = (CommandKind.PIN, CommandKind.PRUNE, CommandKind.PROMOTE)
#: An engine beats once a second. On a disk without room it cannot even say that it waits: then a reader says it.
MUTE_S = 2.5
NO_ROOM_BYTES = 1 << 20


class Reader:
    """A view of one workspace; any number of them may be open. Threads may share one.

    Raises UsageError where the workspace has no index yet, EngineError where the index is damaged.
    """

    def __init__(self, workspace: Workspace) -> None:
        if not workspace.index.exists():
            raise _no_runs(workspace)
        self.workspace = workspace
        try:
            self._connection = open_for_reading(workspace.index)
        except EmptyIndexError:
            raise _no_runs(workspace) from None
        except DamagedIndexError:
            raise _damaged(workspace) from None
        self._objects = ObjectStore(workspace.git_dir)
        self._lock = threading.RLock()
        self._states: dict[str, RunState] = {}

    def data_version(self) -> int:
        """Changes whenever something was written since the last call; costs a fraction of a millisecond."""
        with self._lock:
            (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        return int(version)

    def runs(self) -> list[RunRow]:
        """All runs, the latest first."""
        holder = lock_holder(self.workspace.lock)
        at_work = holder.run if holder else None
        rows = self._all("SELECT * FROM run ORDER BY started_at DESC")
        return [run_row(row, row["run"] == at_work) for row in rows]

    def envelopes(self, run: str, after_seq: int = -1) -> list[Envelope]:
        rows = self._all("SELECT body FROM event WHERE run = ? AND seq > ? ORDER BY seq", (run, after_seq))
        return [under_name(run, envelope_of_json(row["body"])) for row in rows]

    def first_window(self, run: str, n_newest: int) -> Window:
        """Enough of a run to show it: its newest candidates, and the older ones that matter."""
        return window.first_window(self._all, run, n_newest)

    def older_window(self, run: str, before_seq: int, n_more: int) -> Window:
        """The candidates admitted next before an event."""
        return window.older_window(self._all, run, before_seq, n_more)

    def events_of(self, run: str, candidates: Sequence[str]) -> tuple[Envelope, ...]:
        """What a fold needs to know these candidates, in order."""
        return window.events_of(self._all, run, candidates)

    def candidates(self, run: str, n_newest: int) -> tuple[str, ...]:
        """Ids of the newest candidates, the newest first."""
        return window.newest(self._all, run, n_newest)

    def totals(self, run: str) -> Totals:
        """Counts over all of a run."""
        return window.totals(self._all, run)

    def state(self, run: str) -> RunState:
        """The fold of a run's events. The same object each time, brought up to date: use it from one thread."""
        with self._lock:
            state = self._states.get(run)
            if state is None or state.seq > self.last_seq(run):
                state = self._states[run] = RunState()
            for envelope in self.envelopes(run, state.seq):
                state.apply(envelope)
        if state.seq < 0:
            raise UsageError(f"no run {run!r} in {self.workspace.root}", "`kbtui ls` lists the runs")
        return state

    def source(self, commit: str) -> str:
        """The text of a candidate's kernel."""
        with self._lock:
            return read_source(self._objects, commit)

    def engine(self) -> EngineStatus | None:
        """The engine at work here, or else the last that was; None where there was none."""
        holder = lock_holder(self.workspace.lock)
        of_holder, values = ("WHERE run = ? AND pid = ?", (holder.run, holder.pid)) if holder else ("", ())
        beat = next(iter(self._all(f"SELECT * FROM heartbeat {of_holder} ORDER BY at_s DESC LIMIT 1", values)), None)
        if holder and beat is None:
            return EngineStatus(holder.pid, holder.run, True, holder.started_at, None, "starting", None, None, 0.0, 0.0)
        if beat is None:
            return None
        started_at = holder.started_at if holder else ""
        age_s = max(0.0, time.time() - beat["at_s"])
        mute = holder is not None and age_s > MUTE_S and shutil.disk_usage(self.workspace.root).free < NO_ROOM_BYTES
        activity = f"waiting: no room for {self.workspace.root}; make some and it goes on" if mute else beat["activity"]
        told = (activity, beat["candidate"], beat["rung"], beat["wall_s"], beat["gpu_s"])
        return EngineStatus(beat["pid"], beat["run"], holder is not None, started_at, age_s, *told)

    def live_samples(self, run: str, after_id: int = 0) -> list[tuple[int, LiveSample]]:
        rows = self._all("SELECT * FROM live_sample WHERE run = ? AND id > ? ORDER BY id", (run, after_id))
        return [(row["id"], live_sample(row)) for row in rows]

    def insert_command(
        self, run: str, kind: CommandKind, argument: str = "", note: str = "", parent: str | None = None
    ) -> int:
        """Ask something of the run's engine; returns the command's id.

        Raises UsageError where there is no such run, the argument cannot be what the kind wants, or nothing can be
        written here; EngineError where it may be tried again.
        """
        _check_argument(kind, argument, note)
        try:
            with asking(self.workspace.index) as connection:
                if connection.execute("SELECT 1 FROM run WHERE run = ?", (run,)).fetchone() is None:
                    raise UsageError(f"no run {run!r} in {self.workspace.root}", "`kbtui ls` lists the runs")
                _check_candidate(connection, run, argument if kind in _OF_A_CANDIDATE else parent)
                (last,) = connection.execute("SELECT max(id) FROM command WHERE run = ?", (run,)).fetchone()
                number: int = (last or 0) + 1
                connection.execute(_INSERT_COMMAND, (run, number, str(kind), argument, note, parent))
        except OperationalError as error:
            raise _not_written(self.workspace, error) from error
        except DatabaseError:
            raise _damaged(self.workspace) from None
        return number

    def commands(self, run: str) -> list[CommandRow]:
        rows = self._all("SELECT * FROM command WHERE run = ? ORDER BY id", (run,))
        return [command_row(row) for row in rows]

    def artifacts(self, run: str, candidate: str) -> list[ArtifactRef]:
        """What is stored beside a candidate's events, oldest first."""
        query = "SELECT name, sha256 FROM artifact WHERE run = ? AND candidate = ? ORDER BY seq, n"
        return [ArtifactRef(row["name"], row["sha256"]) for row in self._all(query, (run, candidate))]

    def artifact(self, sha256: str) -> bytes:
        return read_artifact(self.workspace.artifacts, sha256)

    def close(self) -> None:
        with self._lock:
            self._objects.close()
            self._connection.close()

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def last_seq(self, run: str) -> int:
        """Number of a run's last event, -1 where there is no such run."""
        rows = self._all("SELECT seq FROM run WHERE run = ?", (run,))
        return int(rows[0]["seq"]) if rows else -1

    def _all(self, query: str, values: Sequence[object] = ()) -> Sequence[Row]:
        try:
            with self._lock, damage_noticed(self.workspace.index):
                return self._connection.execute(query, values).fetchall()
        except DamagedIndexError:
            raise _damaged(self.workspace) from None


def _check_argument(kind: CommandKind, argument: str, note: str) -> None:
    if kind is CommandKind.BUDGET:
        budget_of_json(argument)
    try:
        f"{argument}{note}".encode()
    except UnicodeEncodeError:
        raise UsageError("the command holds a character that is not Unicode's", "give text in UTF-8") from None


def _check_candidate(connection: sqlite3.Connection, run: str, candidate: str | None) -> None:
    known = "SELECT 1 FROM candidate WHERE run = ? AND id = ?"
    if candidate is not None and connection.execute(known, (run, candidate)).fetchone() is None:
        raise UsageError(f"run {run} has no candidate {candidate!r}", f"`kbtui log {run}` names them")


def _not_written(workspace: Workspace, error: OperationalError) -> KbtuiError:
    said = f"the command was not written into {workspace.index}: {error}"
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:  # without the extended part
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return UsageError(said, "give it where the workspace can be written")
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
            return DiskFullError(said, "make room, then give it again")
        case _:
            return EngineError(said, "try again")


def _damaged(workspace: Workspace) -> EngineError:
    return EngineError(f"{workspace.index} is damaged", "run `kbtui reindex`")


def _no_runs(workspace: Workspace) -> UsageError:
    return UsageError(f"no runs in {workspace.root}", "start one with `kbtui run`, or `kbtui reindex`")
