"""Effects: one ledger entry into the index's tables. The same code on a live append and on a rebuild."""

from typing import Any

from sqlalchemy import Connection, Table, bindparam, delete, insert, update

from kbtui.domain.event import (
    CandidateAdmitted,
    CommandAccepted,
    CommandKind,
    Decision,
    Event,
    RunEnded,
    RungCompleted,
    RunResumed,
    RunStarted,
)
from store.ledger import Entry
from store.message import candidate_of
from store.standing import apply_standing
from store.tables import ARTIFACT, CANDIDATE, COMMAND, EVENT, FROM_LEDGER, RUN

#: Built once: a rebuild runs it thousands of times a second.
_ADVANCE = (
    update(RUN)
    .where(RUN.c.run == bindparam("of_run"))
    .values({name: bindparam(name) for name in ("tip", "seq", "wall_s", "gpu_s")})
)


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
        case RungCompleted(decision=decision, score=float() as score) as event if (
            event.new_incumbent or decision is Decision.CROWN
        ):
            best = {"best_candidate": event.candidate, "best_score": score, "best_rung": event.rung}
            higher = RUN.c.best_rung <= event.rung
            connection.execute(update(RUN).where(RUN.c.run == run, higher).values(best))
        case _:
            pass


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
