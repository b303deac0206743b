"""Effects: reads the part of a run that a screen shows, in time that does not depend on how long the run is."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import Row, Select, func, select

from kbtui.domain.event import CandidateAdmitted, Decision, Envelope
from kbtui.domain.overview import RungTotal, Totals, Window
from store.message import candidate_of, envelope_of_json
from store.run_name import under_name
from store.tables import EVENT, LANDMARK, RUN, STANDING, TALLY

Fetch = Callable[[Select[Any]], Sequence[Row[Any]]]

#: Besides the newest: so many of what waits, of the fastest, and of what came highest.
N_WAITING, N_BEST = 200, 40
#: Every version of SQLite takes so many values in one statement.
_MOST_VALUES = 900


def totals(fetch: Fetch, run: str) -> Totals:
    """Counts of a run, read off what the index keeps of them."""
    row = fetch(select(RUN.c.n_candidates, RUN.c.seq).where(RUN.c.run == run))
    tallies = fetch(select(TALLY).where(TALLY.c.run == run).order_by(TALLY.c.rung, TALLY.c.decision))
    waits = (STANDING.c.run == run, STANDING.c.waiting_at.is_not(None))
    waiting = fetch(
        select(STANDING.c.waiting_at, func.count().label("n")).where(*waits).group_by(STANDING.c.waiting_at)
    )
    return Totals(
        row[0].n_candidates if row else 0,
        row[0].seq + 1 if row else 0,
        tuple(RungTotal(t.rung, Decision(t.decision), t.n, t.wall_s, t.gpu_s) for t in tallies),
        tuple((int(w.waiting_at), int(w.n)) for w in waiting),
    )


def first_window(fetch: Fetch, run: str, n_newest: int) -> Window:
    """What a screen shows first: the newest candidates, and those that matter however old they are."""
    from_seq = _admission(fetch, run, None, n_newest)
    recent = _between(fetch, run, from_seq, None)
    last_seq = recent[-1].seq if recent else -1
    if from_seq == 0:
        return Window(tuple(recent), 0)
    return _whole(fetch, run, [*_landmarks(fetch, run, from_seq), *recent], _special(fetch, run), from_seq, last_seq)


def older_window(fetch: Fetch, run: str, before_seq: int, n_more: int) -> Window:
    """The candidates admitted next before ``before_seq``, with every event from the first of them up to there."""
    from_seq = _admission(fetch, run, before_seq, n_more)
    return _whole(fetch, run, _between(fetch, run, from_seq, before_seq), set(), from_seq, before_seq)


def newest(fetch: Fetch, run: str, n: int) -> tuple[str, ...]:
    """Ids of the candidates admitted last, the newest first."""
    query = select(STANDING.c.candidate).where(STANDING.c.run == run)
    return tuple(row.candidate for row in fetch(query.order_by(STANDING.c.admitted_seq.desc()).limit(n)))


def events_of(fetch: Fetch, run: str, candidates: Iterable[str]) -> tuple[Envelope, ...]:
    """Every event of these candidates, and the generators' answers they came in, in order."""
    found = {e.seq: e for chunk in _chunks(sorted(candidates)) for e in _of_candidates(fetch, run, chunk)}
    admitted = sorted(e.seq for e in found.values() if isinstance(e.event, CandidateAdmitted))
    answered_at = -1
    for seq in admitted:
        if seq > answered_at and (answer := _answer_after(fetch, run, seq)) is not None:
            answered_at = answer.seq
            found[answered_at] = answer
    return tuple(found[seq] for seq in sorted(found))


def _whole(fetch: Fetch, run: str, envelopes: list[Envelope], named: set[str], from_seq: int, last_seq: int) -> Window:
    """With every earlier event of the candidates that were admitted before; nothing later than ``last_seq``."""
    here = {e.event.candidate.id for e in envelopes if isinstance(e.event, CandidateAdmitted)}
    told = {c for e in envelopes if (c := candidate_of(e.event)) is not None}
    found = {e.seq: e for e in events_of(fetch, run, (told | named) - here) if e.seq <= last_seq}
    found |= {e.seq: e for e in envelopes}
    return Window(tuple(found[seq] for seq in sorted(found)), from_seq)


def _admission(fetch: Fetch, run: str, before_seq: int | None, n: int) -> int:
    """When the n-th newest candidate was admitted; 0 where there are not so many."""
    query = select(STANDING.c.admitted_seq).where(STANDING.c.run == run)
    if before_seq is not None:
        query = query.where(STANDING.c.admitted_seq < before_seq)
    rows = fetch(query.order_by(STANDING.c.admitted_seq.desc()).limit(1).offset(n))
    return int(rows[0].admitted_seq) if rows else 0


def _special(fetch: Fetch, run: str) -> set[str]:
    """Candidates that a view of the run names: the first, those that wait, the fastest, those that came highest."""
    of_run = select(STANDING.c.candidate).where(STANDING.c.run == run)
    s = STANDING.c
    queries = (
        of_run.order_by(s.admitted_seq).limit(1),
        of_run.where(s.waiting_at.is_not(None)).order_by(s.waiting_at.desc()).limit(N_WAITING),
        of_run.order_by(s.failed, s.measured.desc(), s.score.desc()).limit(N_BEST),
        of_run.order_by(s.failed, s.rung.desc(), s.score.desc()).limit(N_BEST),
    )
    return {row.candidate for query in queries for row in fetch(query)}


def _landmarks(fetch: Fetch, run: str, before_seq: int) -> list[Envelope]:
    joined = select(EVENT.c.body).join(LANDMARK, (LANDMARK.c.run == EVENT.c.run) & (LANDMARK.c.seq == EVENT.c.seq))
    query = joined.where(LANDMARK.c.run == run, LANDMARK.c.seq < before_seq).order_by(LANDMARK.c.seq)
    return _envelopes(fetch, run, query)


def _between(fetch: Fetch, run: str, from_seq: int, before_seq: int | None) -> list[Envelope]:
    query = select(EVENT.c.body).where(EVENT.c.run == run, EVENT.c.seq >= from_seq)
    if before_seq is not None:
        query = query.where(EVENT.c.seq < before_seq)
    return _envelopes(fetch, run, query.order_by(EVENT.c.seq))


def _of_candidates(fetch: Fetch, run: str, candidates: Sequence[str]) -> list[Envelope]:
    query = select(EVENT.c.body).where(EVENT.c.run == run, EVENT.c.candidate.in_(candidates))
    return _envelopes(fetch, run, query)


def _answer_after(fetch: Fetch, run: str, seq: int) -> Envelope | None:
    """The generator's answer that an admission belongs to; it comes a few events later."""
    query = select(EVENT.c.body).where(EVENT.c.run == run, EVENT.c.seq > seq, EVENT.c.type == "ProposalsMade")
    return next(iter(_envelopes(fetch, run, query.order_by(EVENT.c.seq).limit(1))), None)


def _envelopes(fetch: Fetch, run: str, query: Select[Any]) -> list[Envelope]:
    return [under_name(run, envelope_of_json(row.body)) for row in fetch(query)]


def _chunks(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[n : n + _MOST_VALUES] for n in range(0, len(names), _MOST_VALUES))
