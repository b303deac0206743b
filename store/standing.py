"""Effects: where each candidate stands, and each rung's totals, so that a viewer need not read a run's every event."""

import json

from sqlalchemy import Connection, bindparam, func, insert, select, update
from sqlalchemy.dialects.sqlite import insert as upsert

from kbtui.domain.event import (
    CandidateAdmitted,
    CommandAccepted,
    CommandKind,
    Decision,
    Envelope,
    Event,
    ProposalsMade,
    RungCompleted,
)
from kbtui.domain.rung import COMPILE, MEASURE
from store.message import envelope_of_json
from store.tables import EVENT, LANDMARK, STANDING, STANDING_INDEXES, STANDINGS, TALLY

_FAILED = (Decision.REJECT, Decision.SET_ASIDE)
_OF_CANDIDATE = (STANDING.c.run == bindparam("of_run"), STANDING.c.candidate == bindparam("of_candidate"))

#: Built once: a rebuild runs them thousands of times a second.
_COMPLETE = (
    update(STANDING)
    .where(*_OF_CANDIDATE)
    .values(
        rung=bindparam("at_rung"),
        touched_seq=bindparam("at_seq"),
        failed=bindparam("has_failed"),
        waiting_at=func.max(STANDING.c.entry_rung, bindparam("next_rung")),  # NULL where there is no next rung
        score=func.coalesce(bindparam("scored"), STANDING.c.score),
        measured=STANDING.c.measured | bindparam("was_measured"),
    )
)
_ADDED = upsert(TALLY)
_TALLY = _ADDED.on_conflict_do_update(
    index_elements=["run", "rung", "decision"],
    set_={name: TALLY.c[name] + _ADDED.excluded[name] for name in ("n", "wall_s", "gpu_s")},
)


def apply_standing(connection: Connection, run: str, envelope: Envelope) -> None:
    """Bring the standings in line with one event, in the caller's transaction; events come in order."""
    event, seq = envelope.event, envelope.seq
    if is_landmark(event):
        connection.execute(insert(LANDMARK), {"run": run, "seq": seq})
    match event:
        case CandidateAdmitted():
            _admit(connection, run, event, seq)
        case RungCompleted():
            _complete(connection, run, event, seq)
        case CommandAccepted(kind=CommandKind.PRUNE):
            _wait(connection, run, event.argument, None)
        case CommandAccepted(kind=CommandKind.PROMOTE):
            _send_on(connection, run, event.argument)


def is_landmark(event: Event) -> bool:
    """Whether an event is one of the few that a view of the whole run needs: all but what fills a long run."""
    match event:
        case CandidateAdmitted() | ProposalsMade():
            return False
        case RungCompleted():
            return event.new_incumbent or event.decision is Decision.CROWN
        case _:
            return True


def _admit(connection: Connection, run: str, event: CandidateAdmitted, seq: int) -> None:
    row = {"run": run, "candidate": event.candidate.id, "admitted_seq": seq, "touched_seq": seq}
    start = {"entry_rung": event.entry_rung, "rung": COMPILE, "waiting_at": COMPILE}
    connection.execute(insert(STANDING), {**row, **start, "failed": False, "measured": False, "score": None})


def _complete(connection: Connection, run: str, event: RungCompleted, seq: int) -> None:
    next_rung = event.rung + 1 if event.decision is Decision.PROMOTE else None
    row = {"of_run": run, "of_candidate": event.candidate, "at_rung": event.rung, "at_seq": seq}
    measured = event.score is not None and event.rung >= MEASURE
    row |= {"has_failed": event.decision in _FAILED, "scored": event.score, "was_measured": measured}
    connection.execute(_COMPLETE, {**row, "next_rung": next_rung})
    spent = {"n": 1, "wall_s": event.outcome.wall_s, "gpu_s": event.outcome.gpu_s}
    connection.execute(_TALLY, {"run": run, "rung": event.rung, "decision": str(event.decision), **spent})


def _wait(connection: Connection, run: str, candidate: str, rung: int | None) -> None:
    of = (STANDING.c.run == run, STANDING.c.candidate == candidate)
    connection.execute(update(STANDING).where(*of).values(waiting_at=rung))


def _send_on(connection: Connection, run: str, candidate: str) -> None:
    """A person's promotion: to the rung above the last one it finished, if it has finished one."""
    of = (STANDING.c.run == run, STANDING.c.candidate == candidate)
    tried = STANDING.c.touched_seq > STANDING.c.admitted_seq
    found = connection.execute(select(STANDING.c.rung).where(*of, tried)).scalar_one_or_none()
    if found is not None:
        first = select(EVENT.c.body).where(EVENT.c.run == run, EVENT.c.seq == 0)
        ladder = json.loads(connection.execute(first).scalar_one())["event"]["ladder"]
        _wait(connection, run, candidate, min(found + 1, len(ladder) - 1))


def add_standings(connection: Connection) -> None:
    """From version 1 of the index: make the tables and fill them from the events that are there."""
    for table in STANDINGS:
        table.create(connection)
    for index in STANDING_INDEXES:
        index.create(connection, checkfirst=True)
    events = select(EVENT.c.run, EVENT.c.body).order_by(EVENT.c.run, EVENT.c.seq)
    for rows in connection.execution_options(yield_per=2_000).execute(events).partitions():
        for run, body in rows:
            apply_standing(connection, run, envelope_of_json(body))
