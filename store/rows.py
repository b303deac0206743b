"""Rows of the index as a reader gives them: runs, the engine's sign of life, commands, samples. Pure."""

from dataclasses import dataclass
from enum import StrEnum
from sqlite3 import Row

from kbtui.domain.event import CommandKind
from kbtui.domain.measurement import LiveSample


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


def run_row(row: Row, at_work: bool) -> RunRow:
    return RunRow(
        run=row["run"],
        problem=row["problem"],
        device=row["device_name"],
        clock=row["clock"],
        started_at=row["started_at"],
        state=_status(row, at_work),
        end_reason=row["end_reason"],
        best_candidate=row["best_candidate"],
        best_score=row["best_score"],
        n_candidates=row["n_candidates"],
        wall_s=row["wall_s"],
        gpu_s=row["gpu_s"],
    )


def _status(row: Row, at_work: bool) -> RunStatus:
    if row["end_reason"] is not None:
        return RunStatus.ENDED
    if not at_work:
        return RunStatus.LOST
    return RunStatus.PAUSED if row["paused"] else RunStatus.SEARCHING


def command_row(row: Row) -> CommandRow:
    return CommandRow(
        id=row["id"],
        kind=CommandKind(row["kind"]),
        argument=row["argument"],
        note=row["note"],
        parent=row["parent"],
        accepted_seq=row["accepted_seq"],
    )


def live_sample(row: Row) -> LiveSample:
    return LiveSample(
        candidate=row["candidate"],
        against=row["against"],
        shape=row["shape"],
        candidate_us=row["candidate_us"],
        other_us=row["other_us"],
        pair=row["pair"],
        max_pairs=row["max_pairs"],
    )
