"""The ledger as the engine uses it."""

import threading
from typing import TYPE_CHECKING

import pytest

from kbtui.domain.candidate import Candidate, Origin, source_sha
from kbtui.domain.event import CandidateAdmitted, CommandKind, EndReason, RunEnded, RungCompleted, RunStarted
from kbtui.domain.measurement import LiveSample
from kbtui.errors import EngineError, UsageError
from store import record
from store.index import reading
from store.reader import Reader
from store.record import RunLedger, create_run, next_run_name, open_run

if TYPE_CHECKING:
    from kbtui.engine.ports import Ledger

    def _serves_the_engine(ledger: RunLedger) -> Ledger:
        return ledger


@pytest.fixture
def ledger(workspace, scene):
    ledger = create_run(workspace, scene.run_started(), now=scene.Ticking())
    yield ledger
    ledger.close()


@pytest.mark.parametrize(
    ("problem", "names", "name"),
    [
        ("softmax", [], "softmax-1"),
        ("softmax", ["softmax-2", "softmax-10", "rms_norm-40", "softmax-x", "softmax-big-50"], "softmax-11"),
        ("my problem/é..lock", [], "my-problem-lock-1"),
        ("...", [], "run-1"),
    ],
)
def test_run_is_named_after_its_problem_and_the_next_number(problem, names, name):
    assert next_run_name(problem, names) == name


def test_new_run_begins_with_its_start_under_its_own_name(ledger):
    (envelope,) = ledger.events()
    assert isinstance(envelope.event, RunStarted)
    assert (envelope.seq, envelope.event.run, ledger.run) == (0, "softmax-1", "softmax-1")


def test_events_come_back_as_they_were_appended(ledger, workspace, scene):
    scene.tell(ledger)
    before = list(ledger.events())
    ledger.close()
    again = open_run(workspace, ledger.run)
    assert list(again.events()) == before
    assert [envelope.seq for envelope in before] == list(range(len(before)))
    assert again.append(RunEnded(EndReason.STOPPED, ""), 9, 9).seq == len(before)
    again.close()


def test_attachments_are_stored_and_the_outcome_names_them(ledger, workspace, scene):
    commits: dict[int, str] = {}
    scene.admit(ledger, 1, None, commits)
    scene.complete(ledger, 1, True, commits[1])
    *_, last = ledger.events()
    assert isinstance(last.event, RungCompleted)
    (ref,) = last.event.outcome.artifacts
    reader = Reader(workspace)
    assert (ref.name, reader.artifact(ref.sha256)) == ("samples.csv", b"us\n1\n")
    assert [a.name for a in reader.artifacts(ledger.run, "c0001")] == ["prompt.txt", "samples.csv"]
    reader.close()


def test_commands_are_taken_in_order_until_they_are_events(ledger, workspace, scene):
    scene.admit(ledger, 1, None, {})
    with Reader(workspace) as reader:
        ids = [
            reader.insert_command(ledger.run, CommandKind.PIN, "c0001"),
            reader.insert_command(ledger.run, CommandKind.STOP),
        ]
        taken = ledger.take_commands()
        assert [c.command_id for c in taken] == ids == [1, 2]
        assert ledger.take_commands() == taken
        ledger.append(taken[0], 1, 0)
        assert ledger.take_commands() == taken[1:]
        assert [(c.id, c.pending) for c in reader.commands(ledger.run)] == [(1, False), (2, True)]
        with pytest.raises(UsageError, match=r"no run 'nope'.*kbtui ls"):
            reader.insert_command("nope", CommandKind.STOP)


def test_spent_is_the_later_of_event_and_heartbeat(ledger, workspace, scene):
    commits: dict[int, str] = {}
    scene.admit(ledger, 1, None, commits)
    scene.complete(ledger, 1, True, commits[1])
    assert ledger.spent() == record.Spent(1.5, 1.0)
    ledger.beat("measuring", "c0001", 2, 4.0, 0.5)
    ledger.close()
    again = open_run(workspace, ledger.run)
    assert again.spent() == record.Spent(4.0, 1.0)
    again.close()


def test_heartbeats_and_samples_come_from_other_threads(ledger, workspace, scene):
    def beats():
        for n in range(100):
            ledger.beat(f"beat {n}", None, None, n, 0)

    def samples():
        for n in range(100):
            ledger.samples((LiveSample("c0001", "c0000", "4x4", 1.0, 2.0, n, 100),) * 3)

    threads = [threading.Thread(target=target) for target in (beats, samples)]
    for thread in threads:
        thread.start()
    scene.tell(ledger)
    for thread in threads:
        thread.join()
    with Reader(workspace) as reader:
        assert reader.engine().activity == "beat 99"
        rows = reader.live_samples(ledger.run)
        assert len(rows) == 300
        assert reader.live_samples(ledger.run, rows[-2][0]) == rows[-1:]
        assert len(reader.envelopes(ledger.run)) == 17


def test_only_the_latest_samples_are_kept(ledger, workspace, monkeypatch):
    monkeypatch.setattr(record, "KEEP_SAMPLES", 50)
    for n in range(12):
        ledger.samples(tuple(LiveSample("c0001", "first", "4x4", 1.0, 2.0, n * 10 + k, 120) for k in range(10)))
    with Reader(workspace) as reader:
        assert [sample.pair for _, sample in reader.live_samples(ledger.run)] == list(range(70, 120))


def test_unknown_run_names_those_there_are(told):
    workspace, run, _ = told
    with pytest.raises(UsageError, match=f"no run 'softmax-9' in .*; there are {run}"):
        open_run(workspace, "softmax-9")


def test_event_that_cannot_be_written_leaves_nothing_and_can_be_tried_again(ledger, workspace, scene):
    commits: dict[int, str] = {}
    scene.admit(ledger, 1, None, commits)
    n_events = len(list(ledger.events()))
    heads = workspace.git_dir / "refs" / "heads" / "runs"
    heads.rename(heads.with_name("gone"))
    heads.touch()  # no folder: the branch cannot be moved
    with pytest.raises(EngineError):
        scene.complete(ledger, 1, True, commits[1])
    heads.unlink()
    heads.with_name("gone").rename(heads)
    assert len(list(ledger.events())) == n_events
    scene.complete(ledger, 1, True, commits[1])
    assert [envelope.seq for envelope in ledger.events()] == list(range(n_events + 1))


def test_index_that_cannot_be_written_catches_up_with_the_next_event(ledger, workspace, scene):
    with reading(ledger._index) as connection:
        connection.exec_driver_sql("PRAGMA query_only=ON")
    commits: dict[int, str] = {}
    scene.admit(ledger, 1, None, commits)
    ledger.beat("measuring", None, None, 1.0, 0.0)  # lost, and no reason to stop
    ledger.samples((LiveSample("c0001", "first", "4x4", 1.0, 2.0, 1, 2),))
    assert len(list(ledger.events())) == 1
    with reading(ledger._index) as connection:
        connection.exec_driver_sql("PRAGMA query_only=OFF")
    scene.complete(ledger, 1, True, commits[1])
    assert [envelope.seq for envelope in ledger.events()] == [0, 1, 2]


def test_source_with_a_lone_surrogate_is_a_candidate_like_any_other(workspace, scene):
    source = "x = '\ud83d'\n"
    ledger = create_run(workspace, scene.run_started())
    candidate = Candidate("c0001", source_sha(source), (), Origin("llm", "m"), "s", "a reply")
    commit = ledger.commit_candidate(1, source, (), candidate.summary, (("Note", "\ud83d"),))
    ledger.append(CandidateAdmitted(candidate, 1, commit), 1, 0)
    assert ledger.source(commit) == source
    ledger.close()
