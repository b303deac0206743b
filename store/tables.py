"""The index's tables. Everything in them but heartbeat, live_sample and commands not yet taken is in the ledger too."""

from typing import Any, ClassVar, cast

from sqlalchemy import Index, Table
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


class StandingRecord(SQLModel, table=True):
    """Where a candidate stands: as the fold of its events says, so that a long run can be listed without folding it.

    ``rung``: the last it finished; ``waiting_at``: the one it waits for; ``score`` at the highest rung that timed it;
    ``measured``: on all shapes; ``failed``: rejected or unverified; ``touched_seq``: the last event about it.
    """

    __tablename__: ClassVar[Any] = "standing"
    run: str = Field(primary_key=True)
    candidate: str = Field(primary_key=True)
    admitted_seq: int
    touched_seq: int
    entry_rung: int
    rung: int
    waiting_at: int | None = None
    failed: bool = False
    measured: bool = False
    score: float | None = None


class TallyRecord(SQLModel, table=True):
    """A rung's evaluations with one decision: how many, and what they took in seconds."""

    __tablename__: ClassVar[Any] = "tally"
    run: str = Field(primary_key=True)
    rung: int = Field(primary_key=True)
    decision: str = Field(primary_key=True)
    n: int
    wall_s: float
    gpu_s: float


class LandmarkRecord(SQLModel, table=True):
    """The events that a view of a whole run needs: beginnings, ends, commands, new incumbents and champions."""

    __tablename__: ClassVar[Any] = "landmark"
    run: str = Field(primary_key=True)
    seq: int = Field(primary_key=True)


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
STANDING = _table(StandingRecord)
TALLY = _table(TallyRecord)
LANDMARK = _table(LandmarkRecord)

#: Since version 2: what lists a long run without reading it whole.
STANDINGS = (STANDING, TALLY, LANDMARK)
STANDING_INDEXES = (
    Index("event_of_candidate", EVENT.c.run, EVENT.c.candidate),
    Index("artifact_of_candidate", ARTIFACT.c.run, ARTIFACT.c.candidate),
    Index("standing_by_age", STANDING.c.run, STANDING.c.admitted_seq),
    Index("standing_by_wait", STANDING.c.run, STANDING.c.waiting_at, sqlite_where=STANDING.c.waiting_at.is_not(None)),
    Index("standing_by_score", STANDING.c.run, STANDING.c.failed, STANDING.c.measured.desc(), STANDING.c.score.desc()),
    Index("standing_by_rung", STANDING.c.run, STANDING.c.failed, STANDING.c.rung.desc(), STANDING.c.score.desc()),
)

#: What the ledger alone can restore.
FROM_LEDGER = (EVENT, CANDIDATE, ARTIFACT, *STANDINGS, RUN)
ALL = (*FROM_LEDGER, COMMAND, LIVE_SAMPLE, HEARTBEAT)
