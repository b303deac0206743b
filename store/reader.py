"""Effects: what viewers and the command line see of a workspace. Short reads; the engine is never blocked."""

import shutil
import sqlite3
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Executable, Row, func, insert, select
from sqlalchemy.exc import OperationalError

from kbtui.budget import budget_of_json
from kbtui.domain.candidate import ArtifactRef
from kbtui.domain.event import CommandKind, Envelope
from kbtui.domain.measurement import LiveSample
from kbtui.domain.overview import Totals, Window
from kbtui.errors import DiskFullError, EngineError, KbtuiError, UsageError
from kbtui.scheduler.state import RunState
from store import window
from store.artifacts import read_artifact
from store.gitio import ObjectStore
from store.index import DamagedIndexError, EmptyIndexError, open_for_commands, open_for_reading
from store.ledger import read_source
from store.lock import lock_holder
from store.message import envelope_of_json
from store.run_name import under_name
from store.tables import ARTIFACT, CANDIDATE, COMMAND, EVENT, HEARTBEAT, LIVE_SAMPLE, RUN
from store.workspace import Workspace

_OF_A_CANDIDATE = (CommandKind.PIN, CommandKind.PRUNE, CommandKind.PROMOTE)
#: An engine beats once a second. On a disk without room it cannot even say that it waits: then a reader says it.
MUTE_S = 2.5
NO_ROOM_BYTES = 1 << 20


class RunStatus(StrEnum):
    """LOST: not ended, and no engine works on it; it can be resumed."""

    SEARCHING = "searching"
    PAUSED = "paused"
    ENDED = "ended"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run as a list shows it. ``best_score``: speedup over its first kernel; ``clock``: measured or modelled."""

    run: str
    problem: str
    device: str
    clock: str
    started_at: str
    state: RunStatus
    end_reason: str | None
    best_candidate: str | None
    best_score: float | None
    n_candidates: int
    wall_s: float
    gpu_s: float


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """The engine's last sign of life. ``alive``: it holds the lock now; ``beat_age_s``: None before its first beat."""

    pid: int
    run: str
    alive: bool
    started_at: str
    beat_age_s: float | None
    activity: str
    candidate: str | None
    rung: int | None
    wall_s: float
    gpu_s: float


@dataclass(frozen=True, slots=True)
class CommandRow:
    """A command and whether the engine has made it an event (``accepted_seq``)."""

    id: int
    kind: CommandKind
    argument: str
    note: str
    parent: str | None
    accepted_seq: int | None

    @property
    def pending(self) -> bool:
        return self.accepted_seq is None


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
            raise EngineError(f"{workspace.index} is damaged", "run `kbtui reindex`") from None
        self._objects = ObjectStore(workspace.git_dir)
        self._lock = threading.RLock()
        self._states: dict[str, RunState] = {}

    def data_version(self) -> int:
        """Changes whenever something was written since the last call; costs a fraction of a millisecond."""
        with self._lock:
            version: int = self._connection.exec_driver_sql("PRAGMA data_version").scalar_one()
            self._connection.rollback()
        return version

    def runs(self) -> list[RunRow]:
        """All runs, the latest first."""
        holder = lock_holder(self.workspace.lock)
        at_work = holder.run if holder else None
        rows = self._all(select(RUN).order_by(RUN.c.started_at.desc()))
        return [_run_row(row, row.run == at_work) for row in rows]

    def envelopes(self, run: str, after_seq: int = -1) -> list[Envelope]:
        query = select(EVENT.c.body).where(EVENT.c.run == run, EVENT.c.seq > after_seq)
        return [under_name(run, envelope_of_json(row.body)) for row in self._all(query.order_by(EVENT.c.seq))]

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
        query = select(HEARTBEAT).order_by(HEARTBEAT.c.at_s.desc()).limit(1)
        if holder:
            query = query.where(HEARTBEAT.c.run == holder.run, HEARTBEAT.c.pid == holder.pid)
        beat = next(iter(self._all(query)), None)
        if holder and beat is None:
            return EngineStatus(holder.pid, holder.run, True, holder.started_at, None, "starting", None, None, 0.0, 0.0)
        if beat is None:
            return None
        started_at = holder.started_at if holder else ""
        age_s = max(0.0, time.time() - beat.at_s)
        mute = holder is not None and age_s > MUTE_S and shutil.disk_usage(self.workspace.root).free < NO_ROOM_BYTES
        activity = f"waiting: no room for {self.workspace.root}; make some and it goes on" if mute else beat.activity
        told = (activity, beat.candidate, beat.rung, beat.wall_s, beat.gpu_s)
        return EngineStatus(beat.pid, beat.run, holder is not None, started_at, age_s, *told)

    def live_samples(self, run: str, after_id: int = 0) -> list[tuple[int, LiveSample]]:
        query = select(LIVE_SAMPLE).where(LIVE_SAMPLE.c.run == run, LIVE_SAMPLE.c.id > after_id)
        rows = self._all(query.order_by(LIVE_SAMPLE.c.id))
        return [(row.id, _live_sample(row)) for row in rows]

    def insert_command(
        self, run: str, kind: CommandKind, argument: str = "", note: str = "", parent: str | None = None
    ) -> int:
        """Ask something of the run's engine; returns the command's id.

        Raises UsageError where there is no such run, the argument cannot be what the kind wants, or nothing can be
        written here; EngineError where it may be tried again.
        """
        _check_argument(kind, argument, note)
        row = {"run": run, "kind": str(kind), "argument": argument, "note": note, "parent": parent}
        last = select(func.max(COMMAND.c.id)).where(COMMAND.c.run == run)
        try:
            with open_for_commands(self.workspace.index).begin() as connection:
                if connection.execute(select(RUN.c.run).where(RUN.c.run == run)).first() is None:
                    raise UsageError(f"no run {run!r} in {self.workspace.root}", "`kbtui ls` lists the runs")
                _check_candidate(connection, run, argument if kind in _OF_A_CANDIDATE else parent)
                number: int = (connection.execute(last).scalar_one() or 0) + 1
                connection.execute(insert(COMMAND).values(id=number, **row))
        except OperationalError as error:
            raise _not_written(self.workspace, error) from error
        return number

    def commands(self, run: str) -> list[CommandRow]:
        rows = self._all(select(COMMAND).where(COMMAND.c.run == run).order_by(COMMAND.c.id))
        return [
            CommandRow(row.id, CommandKind(row.kind), row.argument, row.note, row.parent, row.accepted_seq)
            for row in rows
        ]

    def artifacts(self, run: str, candidate: str) -> list[ArtifactRef]:
        """What is stored beside a candidate's events, oldest first."""
        of_candidate = (ARTIFACT.c.run == run, ARTIFACT.c.candidate == candidate)
        query = select(ARTIFACT.c.name, ARTIFACT.c.sha256).where(*of_candidate)
        rows = self._all(query.order_by(ARTIFACT.c.seq, ARTIFACT.c.n))
        return [ArtifactRef(row.name, row.sha256) for row in rows]

    def artifact(self, sha256: str) -> bytes:
        return read_artifact(self.workspace.artifacts, sha256)

    def close(self) -> None:
        with self._lock:
            self._objects.close()
            self._connection.close()
            self._connection.engine.dispose()

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def last_seq(self, run: str) -> int:
        """Number of a run's last event, -1 where there is no such run."""
        rows = self._all(select(RUN.c.seq).where(RUN.c.run == run))
        return int(rows[0].seq) if rows else -1

    def _all(self, query: Executable) -> Sequence[Row[Any]]:
        with self._lock:
            rows = self._connection.execute(query).all()
            self._connection.rollback()
        return rows


def _check_argument(kind: CommandKind, argument: str, note: str) -> None:
    if kind is CommandKind.BUDGET:
        budget_of_json(argument)
    try:
        f"{argument}{note}".encode()
    except UnicodeEncodeError:
        raise UsageError("the command holds a character that is not Unicode's", "give text in UTF-8") from None


def _check_candidate(connection: Connection, run: str, candidate: str | None) -> None:
    known = select(CANDIDATE.c.id).where(CANDIDATE.c.run == run, CANDIDATE.c.id == candidate)
    if candidate is not None and connection.execute(known).first() is None:
        raise UsageError(f"run {run} has no candidate {candidate!r}", f"`kbtui log {run}` names them")


def _not_written(workspace: Workspace, error: OperationalError) -> KbtuiError:
    said = f"the command was not written into {workspace.index}: {error.orig}"
    match getattr(error.orig, "sqlite_errorcode", 0) & 0xFF:  # without the extended part
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return UsageError(said, "give it where the workspace can be written")
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
            return DiskFullError(said, "make room, then give it again")
        case _:
            return EngineError(said, "try again")


def _no_runs(workspace: Workspace) -> UsageError:
    return UsageError(f"no runs in {workspace.root}", "start one with `kbtui run`, or `kbtui reindex`")


def _run_row(row: Row[Any], at_work: bool) -> RunRow:
    return RunRow(
        run=row.run,
        problem=row.problem,
        device=row.device_name,
        clock=row.clock,
        started_at=row.started_at,
        state=_status(row, at_work),
        end_reason=row.end_reason,
        best_candidate=row.best_candidate,
        best_score=row.best_score,
        n_candidates=row.n_candidates,
        wall_s=row.wall_s,
        gpu_s=row.gpu_s,
    )


def _live_sample(row: Row[Any]) -> LiveSample:
    return LiveSample(
        candidate=row.candidate,
        against=row.against,
        shape=row.shape,
        candidate_us=row.candidate_us,
        other_us=row.other_us,
        pair=row.pair,
        max_pairs=row.max_pairs,
    )


def _status(row: Row[Any], at_work: bool) -> RunStatus:
    if row.end_reason is not None:
        return RunStatus.ENDED
    if not at_work:
        return RunStatus.LOST
    return RunStatus.PAUSED if row.paused else RunStatus.SEARCHING
