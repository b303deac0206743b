"""The index's tables. Everything in them but heartbeat, live_sample and commands not yet taken is in the ledger too."""

from typing import Any, ClassVar, cast

from sqlalchemy import Table
from sqlmodel import Field, SQLModel


class RunRecord(SQLModel, table=True):
    """One run. ``tip``: the ledger commit this index has caught up with. ``best_*``: the best score so far."""

    __tablename__: ClassVar[Any] = "run"
    run: str = Field(primary_key=True)
    problem: str
    problem_path: str
    device_key: str
    device_name: str
    clock: str
    started_at: str
    tip: str
    seq: int
    wall_s: float
    gpu_s: float
    n_candidates: int = 0
    paused: bool = False
    end_reason: str | None = None
    best_candidate: str | None = None
    best_score: float | None = None
    best_rung: int = -1


class EventRecord(SQLModel, table=True):
    """One event. ``body``: the envelope's JSON, as in the ledger's commit ``commit_id``."""

    __tablename__: ClassVar[Any] = "event"
    run: str = Field(primary_key=True)
    seq: int = Field(primary_key=True)
    commit_id: str
    at: str
    wall_s: float
    gpu_s: float
    type: str
    candidate: str | None = None
    body: str


class CandidateRecord(SQLModel, table=True):
    """One candidate. ``parents``: candidate ids with spaces between."""

    __tablename__: ClassVar[Any] = "candidate"
    run: str = Field(primary_key=True)
    id: str = Field(primary_key=True)
    commit_id: str
    source_sha: str
    parents: str
    generator: str
    operator: str
    hint: str | None = None
    structure: str
    summary: str
    entry_rung: int
    admitted_seq: int


class CommandRecord(SQLModel, table=True):
    """What a viewer asked of a run; ``accepted_seq``: the event it became, None while the engine has not taken it."""

    __tablename__: ClassVar[Any] = "command"
    run: str = Field(primary_key=True)
    id: int = Field(primary_key=True)
    kind: str
    argument: str
    note: str
    parent: str | None = None
    accepted_seq: int | None = None


class ArtifactRecord(SQLModel, table=True):
    """A file of an event: the n-th of it, by name and the SHA-256 that names it on disk."""

    __tablename__: ClassVar[Any] = "artifact"
    run: str = Field(primary_key=True)
    seq: int = Field(primary_key=True)
    n: int = Field(primary_key=True)
    candidate: str | None = None
    name: str
    sha256: str


class LiveSampleRecord(SQLModel, table=True):
    """Samples as they arrive, the latest few thousand of a run; for the live pane only."""

    __tablename__: ClassVar[Any] = "live_sample"
    id: int | None = Field(default=None, primary_key=True)
    run: str = Field(index=True)
    candidate: str
    against: str
    shape: str
    candidate_us: float
    other_us: float
    pair: int
    max_pairs: int


class HeartbeatRecord(SQLModel, table=True):
    """The engine's last sign of life in a run (``at_s``: seconds since 1970) and what it had spent by then."""

    __tablename__: ClassVar[Any] = "heartbeat"
    run: str = Field(primary_key=True)
    pid: int
    at_s: float
    activity: str
    candidate: str | None = None
    rung: int | None = None
    wall_s: float
    gpu_s: float


def _table(model: type[SQLModel]) -> Table:
    return cast(Table, model.__table__)  # type: ignore[attr-defined]


RUN = _table(RunRecord)
EVENT = _table(EventRecord)
CANDIDATE = _table(CandidateRecord)
COMMAND = _table(CommandRecord)
ARTIFACT = _table(ArtifactRecord)
LIVE_SAMPLE = _table(LiveSampleRecord)
HEARTBEAT = _table(HeartbeatRecord)

#: What the ledger alone can restore.
FROM_LEDGER = (EVENT, CANDIDATE, ARTIFACT, RUN)
ALL = (*FROM_LEDGER, COMMAND, LIVE_SAMPLE, HEARTBEAT)
