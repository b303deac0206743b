"""Effects: reads the part of a run that a screen shows, in time that does not depend on how long the run is."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from sqlite3 import Row

from kbtui.domain.event import CandidateAdmitted, Decision, Envelope
from kbtui.domain.overview import RungTotal, Totals, Window
from store.message import candidate_of, envelope_of_json
from store.run_name import under_name

#: A query and its values, to rows.
Fetch = Callable[[str, Sequence[object]], Sequence[Row]]

#: Besides the newest: so many of what waits, of the fastest, and of what came highest.
N_WAITING, N_BEST = 200, 40
#: Every version of SQLite takes so many values in one statement.
_MOST_VALUES = 900

_WAITING = """
    SELECT waiting_at, count(*) AS n FROM standing WHERE run = ? AND waiting_at IS NOT NULL GROUP BY waiting_at"""
#: Candidates that a view of the run names: the first, those that wait, the fastest, those that came highest.
_SPECIAL = (
    ("SELECT candidate FROM standing WHERE run = ? ORDER BY admitted_seq LIMIT ?", 1),
    ("""SELECT candidate FROM standing WHERE run = ? AND waiting_at IS NOT NULL
        ORDER BY waiting_at DESC LIMIT ?""", N_WAITING),
    ("SELECT candidate FROM standing WHERE run = ? ORDER BY failed, measured DESC, score DESC LIMIT ?", N_BEST),
    ("SELECT candidate FROM standing WHERE run = ? ORDER BY failed, rung DESC, score DESC LIMIT ?", N_BEST),
)  # fmt: skip
_LANDMARKS = """
    SELECT body FROM landmark JOIN event ON event.run = landmark.run AND event.seq = landmark.seq
    WHERE landmark.run = ? AND landmark.seq < ? ORDER BY landmark.seq"""
#: The generator's answer that an admission belongs to; it comes a few events later.
_ANSWER = "SELECT body FROM event WHERE run = ? AND seq > ? AND type = 'ProposalsMade' ORDER BY seq LIMIT 1"


def totals(fetch: Fetch, run: str) -> Totals:
    """Counts of a run, read off what the index keeps of them."""
    row = fetch("SELECT n_candidates, seq FROM run WHERE run = ?", (run,))
    tallies = fetch("SELECT * FROM tally WHERE run = ? ORDER BY rung, decision", (run,))
    waiting = fetch(_WAITING, (run,))
    return Totals(
        row[0]["n_candidates"] if row else 0,
        row[0]["seq"] + 1 if row else 0,
        tuple(RungTotal(t["rung"], Decision(t["decision"]), t["n"], t["wall_s"], t["gpu_s"]) for t in tallies),
        tuple((w["waiting_at"], w["n"]) for w in waiting),
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


def leading(fetch: Fetch, run: str, last_seq: int) -> tuple[Envelope, ...]:
    """Enough of a run to fold who leads it by then: its landmarks, with every event of the candidates in them."""
    return _whole(fetch, run, _landmarks(fetch, run, last_seq + 1), set(), last_seq, last_seq).envelopes


def newest(fetch: Fetch, run: str, n: int) -> tuple[str, ...]:
    """Ids of the candidates admitted last, the newest first."""
    rows = fetch("SELECT candidate FROM standing WHERE run = ? ORDER BY admitted_seq DESC LIMIT ?", (run, n))
    return tuple(row["candidate"] for row in rows)


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
    older, values = ("", ()) if before_seq is None else ("AND admitted_seq < ?", (before_seq,))
    query = f"SELECT admitted_seq FROM standing WHERE run = ? {older} ORDER BY admitted_seq DESC LIMIT 1 OFFSET ?"
    rows = fetch(query, (run, *values, n))
    return int(rows[0]["admitted_seq"]) if rows else 0


def _special(fetch: Fetch, run: str) -> set[str]:
    return {row["candidate"] for query, n in _SPECIAL for row in fetch(query, (run, n))}


def _landmarks(fetch: Fetch, run: str, before_seq: int) -> list[Envelope]:
    return _envelopes(fetch, run, _LANDMARKS, (before_seq,))


def _between(fetch: Fetch, run: str, from_seq: int, before_seq: int | None) -> list[Envelope]:
    older, values = ("", ()) if before_seq is None else ("AND seq < ?", (before_seq,))
    query = f"SELECT body FROM event WHERE run = ? AND seq >= ? {older} ORDER BY seq"
    return _envelopes(fetch, run, query, (from_seq, *values))


def _of_candidates(fetch: Fetch, run: str, candidates: Sequence[str]) -> list[Envelope]:
    query = f"SELECT body FROM event WHERE run = ? AND candidate IN ({','.join('?' * len(candidates))})"
    return _envelopes(fetch, run, query, candidates)


def _answer_after(fetch: Fetch, run: str, seq: int) -> Envelope | None:
    return next(iter(_envelopes(fetch, run, _ANSWER, (seq,))), None)


def _envelopes(fetch: Fetch, run: str, query: str, values: Sequence[object]) -> list[Envelope]:
    return [under_name(run, envelope_of_json(row["body"])) for row in fetch(query, (run, *values))]


def _chunks(names: Sequence[str]) -> Iterator[Sequence[str]]:
    return (names[n : n + _MOST_VALUES] for n in range(0, len(names), _MOST_VALUES))
