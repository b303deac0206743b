"""Effects: one ledger entry into the index's tables. The same code on a live append and on a rebuild."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, Table, bindparam, delete, insert, update

from kbtui.domain.event import (
    CandidateAdmitted,
    CommandAccepted,
    CommandKind,
    Envelope,
    Event,
    RunEnded,
    RungCompleted,
    RunResumed,
    RunStarted,
)
from kbtui.domain.rung import MEASURE
from kbtui.scheduler.best import best_so_far
from kbtui.scheduler.state import RunState
from store.ledger import Entry
from store.message import candidate_of
from store.standing import apply_standing, is_landmark
from store.tables import ARTIFACT, CANDIDATE, COMMAND, EVENT, FROM_LEDGER, RUN
from store.window import leading

#: Built once: a rebuild runs it thousands of times a second.
_ADVANCE = (
    update(RUN)
    .where(RUN.c.run == bindparam("of_run"))
    .values({name: bindparam(name) for name in ("tip", "seq", "wall_s", "gpu_s")})
)

_LED = """
    SELECT 1 FROM event JOIN landmark ON landmark.run = event.run AND landmark.seq = event.seq
    WHERE event.run = ? AND event.candidate = ? AND event.type = 'RungCompleted' LIMIT 1"""


def apply_entry(connection: Connection, run: str, entry: Entry) -> None:
    """Insert the event and bring the run's row up to date, in the caller's transaction."""
    envelope = entry.envelope
    event, candidate = envelope.event, candidate_of(envelope.event)
    _insert(
        connection,
        EVENT,
        run=run,
        seq=envelope.seq,
        commit_id=entry.commit,
        at=envelope.at,
        wall_s=envelope.wall_s,
        gpu_s=envelope.gpu_s,
        type=type(event).__name__,
        candidate=candidate,
        body=entry.body,
    )
    for n, ref in enumerate(entry.artifacts):
        _insert(
            connection,
            ARTIFACT,
            run=run,
            seq=envelope.seq,
            n=n,
            candidate=candidate,
            name=ref.name,
            sha256=ref.sha256,
        )
    _apply_event(connection, run, entry)
    apply_standing(connection, run, envelope)
    _lead(connection, run, envelope)
    place = {"tip": entry.commit, "seq": envelope.seq, "wall_s": envelope.wall_s, "gpu_s": envelope.gpu_s}
    connection.execute(_ADVANCE, {"of_run": run, **place})
    if changes := _run_changes(event):
        connection.execute(update(RUN).where(RUN.c.run == run).values(changes))


def forget_run(connection: Connection, run: str) -> None:
    """Delete what the ledger can restore of a run; commands not taken yet and the heartbeat stay."""
    for table in FROM_LEDGER:
        connection.execute(delete(table).where(table.c.run == run))
    taken = COMMAND.c.accepted_seq.is_not(None)
    connection.execute(delete(COMMAND).where(COMMAND.c.run == run, taken))


def _apply_event(connection: Connection, run: str, entry: Entry) -> None:
    match entry.envelope.event:
        case RunStarted() as event:
            _insert(connection, RUN, **_run_row(run, event, entry))
        case CandidateAdmitted() as event:
            _insert(connection, CANDIDATE, **_candidate_row(run, event, entry))
            more = {"n_candidates": RUN.c.n_candidates + 1}
            connection.execute(update(RUN).where(RUN.c.run == run).values(more))
        case CommandAccepted() as event:
            _take_command(connection, run, event, entry.envelope.seq)
        case _:
            pass


def _lead(connection: Connection, run: str, envelope: Envelope) -> None:
    """Who leads now, where an event can have changed that: by the rule by which the ledger's tree holds the best."""
    event = envelope.event
    if not isinstance(event, RungCompleted) or not (is_landmark(event) or _has_led(connection, run, event)):
        return
    state = RunState()
    for earlier in leading(partial(_fetch, connection), run, envelope.seq):
        state.apply(earlier)
    best = best_so_far(state)
    if best is not None and best.score is not None:
        row = {"best_candidate": best.candidate.id, "best_score": best.score, "best_rung": max(best.results)}
        connection.execute(update(RUN).where(RUN.c.run == run).values(row))


def _has_led(connection: Connection, run: str, event: RungCompleted) -> bool:
    """Whether it was best on some rung, and may now have lost on a dearer one."""
    return event.rung > MEASURE and bool(_fetch(connection, _LED, (run, event.candidate)))


def _fetch(connection: Connection, query: str, values: Sequence[object]) -> Sequence[Any]:
    return connection.exec_driver_sql(query, tuple(values)).mappings().all()


def _run_changes(event: Event) -> dict[str, Any]:
    match event:
        case CommandAccepted(kind=CommandKind.PAUSE):
            return {"paused": True}
        case CommandAccepted(kind=CommandKind.RESUME):
            return {"paused": False}
        case RunEnded(reason=reason):
            return {"end_reason": str(reason)}
        case RunResumed():
            return {"end_reason": None, "paused": False}
        case _:
            return {}


def _take_command(connection: Connection, run: str, event: CommandAccepted, seq: int) -> None:
    same = (COMMAND.c.run == run, COMMAND.c.id == event.command_id)
    row = {"kind": str(event.kind), "argument": event.argument, "note": event.note, "parent": event.parent}
    connection.execute(delete(COMMAND).where(*same))
    _insert(connection, COMMAND, run=run, id=event.command_id, **row, accepted_seq=seq)


def _run_row(run: str, event: RunStarted, entry: Entry) -> dict[str, Any]:
    return {
        "run": run,
        "problem": event.problem,
        "problem_path": event.problem_path,
        "device_key": event.device.key,
        "device_name": event.device.name,
        "clock": str(event.device.clock),
        "started_at": entry.envelope.at,
        "tip": entry.commit,
        "seq": entry.envelope.seq,
        "wall_s": entry.envelope.wall_s,
        "gpu_s": entry.envelope.gpu_s,
    }


def _candidate_row(run: str, event: CandidateAdmitted, entry: Entry) -> dict[str, Any]:
    candidate = event.candidate
    return {
        "run": run,
        "id": candidate.id,
        "commit_id": event.commit,
        "source_sha": candidate.source_sha,
        "parents": " ".join(candidate.parents),
        "generator": candidate.origin.generator,
        "operator": candidate.origin.operator,
        "hint": candidate.origin.hint,
        "structure": candidate.structure,
        "summary": candidate.summary,
        "entry_rung": event.entry_rung,
        "admitted_seq": entry.envelope.seq,
    }


def _insert(connection: Connection, table: Table, **row: Any) -> None:
    connection.execute(insert(table), row)
