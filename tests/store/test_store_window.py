"""A window onto a long run folds to what the whole run folds to, for all that it names; and nothing is read whole."""

import random
import sqlite3
from contextlib import closing

import pytest

from kbtui.domain.candidate import Candidate, Origin, candidate_id, source_sha
from kbtui.domain.evaluation import RungOutcome
from kbtui.domain.event import CandidateAdmitted, CommandAccepted, CommandKind, Decision, ProposalsMade, RungCompleted
from kbtui.domain.verdict import Proof, verified
from kbtui.scheduler.state import RunState
from store.reader import Reader
from store.record import create_run
from store.workspace import create_workspace

N_CANDIDATES, BATCH = 90, 6


def candidate(number):
    parents = (candidate_id(max(1, number // 4)),) if number > 1 else ()
    generator = "seed" if number == 1 else "rewrites"
    origin = Origin(generator, "tile", None, ())
    return Candidate(candidate_id(number), source_sha(str(number)), parents, origin, f"s{number % 5}", f"tile {number}")


def completed(rng, number, rung, decision, best):
    timed = rung > 0 and decision is not Decision.REJECT
    score = round(rng.uniform(0.5, 1.5), 3) if timed else None
    incumbent = score is not None and score > best.get(rung, 1.0)
    if incumbent:
        best[rung] = score
    outcome = RungOutcome(verified(rung, Proof.GPU, "checks", 1e-7), 0.1, 0.2)
    return RungCompleted(candidate_id(number), rung, outcome, decision, "because", score, incumbent)


def record(ledger, rng):
    """Batches are admitted and answered; each candidate climbs at random, some long after they came."""
    climbing, best, wall_s = [], {}, 0.0
    commit = ledger.commit_candidate(1, "x = 1\n", (), "first", ())
    for first in range(1, N_CANDIDATES + 1, BATCH):
        for number in range(first, first + BATCH):
            ledger.append(CandidateAdmitted(candidate(number), rng.choice((1, 1, 2)), commit), wall_s, 0.0)
            climbing.append((number, 0))
        ledger.append(ProposalsMade("rewrites", None, BATCH, 0, False, 0.1), wall_s, 0.0)
        for _ in range(rng.randrange(12)):
            if climbing:
                number, rung = climbing.pop(rng.randrange(len(climbing)))
                ways = [Decision.PROMOTE, Decision.PROMOTE, Decision.PRUNE, Decision.REJECT]
                decision = Decision.CROWN if rung == 4 else rng.choice(ways)
                wall_s += 1
                ledger.append(completed(rng, number, rung, decision, best), wall_s, 0.0)
                if decision is Decision.PROMOTE:
                    climbing.append((number, rung + 1))
        if rng.random() < 0.3:
            ledger.append(CommandAccepted(first, CommandKind.HINT, "exp2"), wall_s, 0.0)


@pytest.fixture(scope="module")
def reader(tmp_path_factory, request):
    workspace = create_workspace(tmp_path_factory.mktemp("window"))
    from tests.store.conftest import run_started

    ledger = create_run(workspace, run_started())
    record(ledger, random.Random(8))
    ledger.close()
    with Reader(workspace) as opened:
        yield opened


RUN = "softmax-1"


def fold(envelopes):
    state = RunState()
    for envelope in envelopes:
        state.apply(envelope)
    return state


def agrees(part, whole):
    """All that the part knows is as in the whole, and it knows what matters."""
    assert {name: whole.tried[name] for name in part.tried} == part.tried
    assert (part.champion, part.incumbents, part.first) == (whole.champion, whole.incumbents, whole.first)
    assert (part.seq, part.paused, part.user_hints) == (whole.seq, whole.paused, whole.user_hints)
    assert {t for t in whole.tried if whole.tried[t].waiting_at is not None} <= set(part.tried)


@pytest.mark.parametrize("n_newest", [1, 7, 30, 89, 500])
def test_a_window_folds_to_what_the_whole_run_does(reader, n_newest):
    whole = fold(reader.envelopes(RUN))
    window = reader.first_window(RUN, n_newest)
    part = fold(window.envelopes)
    agrees(part, whole)
    assert list(whole.tried)[-n_newest:] == list(part.tried)[-n_newest:]
    assert (window.from_seq == 0) == (n_newest > N_CANDIDATES)
    assert len(part.tried) < len(whole.tried) or n_newest > 7
    fastest = max((t for t in whole.tried.values() if t.score), key=lambda t: (2 in t.results, t.score))
    assert fastest.candidate.id in part.tried


def test_older_windows_bring_the_whole_run_in_the_end(reader):
    whole = fold(reader.envelopes(RUN))
    window = reader.first_window(RUN, 5)
    found = {e.seq: e for e in window.envelopes}
    while window.from_seq:
        window = reader.older_window(RUN, window.from_seq, 11)
        found |= {e.seq: e for e in window.envelopes}
        agrees(fold(found[seq] for seq in sorted(found)), whole)
    assert sorted(found) == list(range(len(found)))


def test_a_candidate_that_is_not_in_it_can_be_had_alone(reader):
    whole = fold(reader.envelopes(RUN))
    state = fold([reader.envelopes(RUN)[0], *reader.events_of(RUN, ["c0003", "c0040"])])
    assert {name: state.tried[name] for name in ("c0003", "c0040")} == {
        name: whole.tried[name] for name in ("c0003", "c0040")
    }


def test_totals_are_over_the_whole_run(reader):
    whole, totals = fold(reader.envelopes(RUN)), reader.totals(RUN)
    assert totals.n_candidates == len(whole.tried) == N_CANDIDATES
    assert totals.n_events == whole.seq + 1
    assert sum(t.n for t in totals.rungs) == sum(len(t.results) for t in whole.tried.values())
    waits = [t.waiting_at for t in whole.tried.values() if t.waiting_at is not None]
    assert dict(totals.waiting) == {rung: waits.count(rung) for rung in set(waits)}


def look(reader):
    """All that a viewer asks of the store."""
    reader.runs()
    reader.engine()
    reader.first_window(RUN, 5)
    reader.older_window(RUN, 200, 5)
    reader.events_of(RUN, ["c0001", "c0002"])
    reader.totals(RUN)
    reader.envelopes(RUN, 300)
    reader.live_samples(RUN, 10)
    reader.commands(RUN)
    reader.artifacts(RUN, "c0001")
    reader.last_seq(RUN)


#: One row a run each: the list of runs is all of them.
LISTED_WHOLE = ("run", "heartbeat")


def test_no_query_of_a_viewer_reads_a_table_whole(reader):
    asked = []
    reader._connection.set_trace_callback(asked.append)
    look(reader)
    reader._connection.set_trace_callback(None)
    queries = [statement for statement in asked if statement.lstrip().startswith("SELECT")]
    assert len(queries) >= 15
    with closing(sqlite3.connect(reader.workspace.index)) as connection:
        for statement in queries:
            for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {statement}"):
                whole = step.startswith("SCAN") and step.split()[1] not in LISTED_WHOLE
                assert not whole, (step, statement)
                assert "TEMP B-TREE" not in step or "FROM run" in statement or "heartbeat" in statement, (
                    step,
                    statement,
                )
