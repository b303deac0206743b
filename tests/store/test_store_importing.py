"""Runs brought in from a bundle, a repository and a workspace; what is not kbtui's stays out."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbtui.domain.candidate import Candidate, Origin, source_sha
from kbtui.domain.event import CandidateAdmitted, RunStarted
from kbtui.errors import EngineError, UsageError
from store.importing import import_runs, run_artifacts
from store.ledger import write_commit
from store.lock import EngineLock
from store.objects import ObjectStore
from store.opening import open_for_reading
from store.reader import Reader
from store.record import RunLedger, create_run, open_run
from store.tables import FROM_LEDGER
from store.workspace import Workspace, create_workspace

Told = tuple[Workspace, str, dict[int, str]]
Git = Callable[..., str]


@pytest.fixture
def other(tmp_path: Path) -> Workspace:
    """The workspace on the machine that the run comes to."""
    return create_workspace(tmp_path / "other")


def rows(workspace: Workspace, run: str) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of a run that a ledger restores, the run's name left out."""
    connection = open_for_reading(workspace.index)
    found = {}
    for table in FROM_LEDGER:
        columns = [c.name for c in table.c if c.name != "run"]
        query = f"SELECT {', '.join(columns)} FROM {table.name} WHERE run = ? ORDER BY {', '.join(columns[:2])}"
        found[table.name] = [tuple(row) for row in connection.execute(query, (run,))]
    connection.close()
    return found


def bundle_of(workspace: Workspace, path: Path) -> Path:
    command = ["git", f"--git-dir={workspace.git_dir}", "bundle", "create", "-q", str(path), "--all"]
    subprocess.run(command, check=True)
    return path


def test_a_run_comes_out_of_a_bundle_as_it_was(told: Told, other: Workspace, tmp_path: Path, git: Git):
    workspace, run, _ = told
    report = import_runs(other, bundle_of(workspace, tmp_path / "run.bundle"))
    assert [(r.name, r.here, r.n_new) for r in report.runs] == [(run, run, r.n_events) for r in report.runs]
    assert rows(other, run) == rows(workspace, run)
    assert git(other.git_dir, "rev-parse", f"runs/{run}") == git(workspace.git_dir, "rev-parse", f"runs/{run}")
    git(other.git_dir, "fsck", "--strict")
    refs = git(other.git_dir, "for-each-ref", "--format=%(refname)").split()
    assert refs == ["refs/heads/kbtui/readme", f"refs/heads/runs/{run}"]
    assert not list(other.scratch.iterdir())


def test_from_a_repository_every_artifact_is_named_as_missing(told: Told, other: Workspace):
    workspace, run, _ = told
    (imported,) = import_runs(other, workspace.git_dir).runs
    assert imported.copied == 0
    assert imported.missing == run_artifacts(workspace, run)
    assert len(imported.missing) == 8


def test_from_a_workspace_artifacts_come_along_but_for_damaged_ones(told: Told, other: Workspace):
    workspace, run, _ = told
    damaged, lost, *_ = {a.ref.sha256 for a in run_artifacts(workspace, run)}
    (workspace.artifacts / damaged).write_bytes(b"something else")
    (workspace.artifacts / lost).unlink()
    (imported,) = import_runs(other, workspace.root).runs
    assert {a.ref.sha256 for a in imported.missing} == {damaged, lost}
    assert imported.copied == len(list(other.artifacts.iterdir())) > 0
    for path in other.artifacts.iterdir():
        assert path.read_bytes() == (workspace.artifacts / path.name).read_bytes()


def test_a_run_whose_name_is_taken_gets_the_next_and_says_so_itself(told: Told, other: Workspace, scene: Any):
    workspace, run, _ = told
    create_run(other, scene.run_started()).close()
    mine = rows(other, run)
    (imported,) = import_runs(other, workspace.git_dir).runs
    assert (imported.name, imported.here) == ("softmax-1", "softmax-2")
    assert rows(other, run) == mine
    assert rows(other, "softmax-2") == rows(workspace, run)
    with Reader(other) as reader:
        started = reader.state("softmax-2").started
        assert started is not None
        assert started.run == "softmax-2"
        assert {row.run for row in reader.runs()} == {"softmax-1", "softmax-2"}
    ledger = open_run(other, "softmax-2")
    first = next(iter(ledger.events())).event
    ledger.close()
    assert isinstance(first, RunStarted)
    assert first.run == "softmax-2"


def test_the_same_run_again_changes_nothing(told: Told, other: Workspace):
    workspace, run, _ = told
    import_runs(other, workspace.git_dir)
    before = rows(other, run)
    (again,) = import_runs(other, workspace.git_dir).runs
    assert (again.here, again.n_new) == (run, 0)
    assert rows(other, run) == before


def test_a_run_that_went_on_elsewhere_goes_on_here_under_the_name_it_has_here(told: Told, other: Workspace, scene: Any):
    workspace, run, commits = told
    create_run(other, scene.run_started()).close()
    import_runs(other, workspace.git_dir)
    ledger = open_run(workspace, run)
    scene.complete(ledger, 2, False, commits[2])
    ledger.close()
    (imported,) = import_runs(other, workspace.git_dir).runs
    assert (imported.here, imported.n_new) == ("softmax-2", 1)
    assert rows(other, "softmax-2") == rows(workspace, run)
    (back,) = import_runs(workspace, other.git_dir, ("softmax-2",)).runs
    assert (back.here, back.n_new) == (run, 0)


def test_a_run_that_was_shorter_there_takes_nothing_away_here(told: Told, other: Workspace, scene: Any):
    workspace, run, commits = told
    import_runs(other, workspace.git_dir)
    ledger = open_run(other, run)
    scene.complete(ledger, 2, False, commits[2])
    ledger.close()
    longer = rows(other, run)
    (imported,) = import_runs(other, workspace.git_dir).runs
    assert (imported.here, imported.n_new) == (run, 0)
    assert rows(other, run) == longer


def test_two_continuations_of_one_run_are_two_runs(told: Told, other: Workspace, scene: Any):
    workspace, run, commits = told
    import_runs(other, workspace.git_dir)
    for place, number in ((workspace, 2), (other, 3)):
        ledger = open_run(place, run)
        scene.complete(ledger, number, False, commits[number])
        ledger.close()
    (imported,) = import_runs(other, workspace.git_dir).runs
    assert imported.here == "softmax-2"
    assert rows(other, "softmax-2") == rows(workspace, run)


def test_a_commit_of_someone_else_on_the_branch_is_named_and_nothing_of_the_run_comes_in(
    told: Told, other: Workspace, git: Git, tmp_path: Path
):
    workspace, run, _ = told
    git(tmp_path, "clone", "-q", "-b", f"runs/{run}", str(workspace.git_dir), "work")
    identity = ("-c", "user.name=Eve", "-c", "user.email=eve@example.org")
    git(tmp_path / "work", *identity, "commit", "-q", "--allow-empty", "-m", "r2 c0002 looks good")
    report = import_runs(other, tmp_path / "work")
    assert report.runs == ()
    assert "looks good" in report.refused[0]
    assert "Eve" in report.refused[0]
    assert "runs/" not in git(other.git_dir, "for-each-ref")
    assert git(other.git_dir, "count-objects").startswith("0 ")


def test_a_candidate_that_is_not_what_its_event_says_is_refused_though_its_commit_bears_our_name(
    told: Told, other: Workspace
):
    workspace, run, commits = told
    ledger = open_run(workspace, run)
    said = Candidate("c0005", source_sha("what it says"), ("c0001",), Origin("llm", "m"), "s", "swapped")
    commit = ledger.commit_candidate(5, "what it holds", (commits[1],), "swapped", ())
    ledger.append(CandidateAdmitted(said, 1, commit), 9, 6)
    ledger.close()
    (refused,) = import_runs(other, workspace.git_dir).refused
    assert "c0005" in refused
    assert "does not hold the kernel" in refused


def test_history_that_no_event_admitted_is_refused(told: Told, other: Workspace):
    workspace, run, _ = told
    ledger = open_run(workspace, run)
    smuggled = _commit(workspace, ledger, "a candidate nobody admitted")
    said = Candidate("c0005", source_sha("x"), ("c0001",), Origin("llm", "m"), "s", "from nowhere")
    commit = ledger.commit_candidate(5, "x", (smuggled,), "from nowhere", ())
    ledger.append(CandidateAdmitted(said, 1, commit), 9, 6)
    ledger.close()
    (refused,) = import_runs(other, workspace.git_dir).refused
    assert "is not candidate c0005 as kbtui made it" in refused


def _commit(workspace: Workspace, ledger: RunLedger, subject: str) -> str:
    objects = ObjectStore(workspace.git_dir)
    try:
        tree = objects.write(b"tree", b"")
        return write_commit(objects, tree, (), f"{subject}\n", 0)
    finally:
        objects.sync()
        objects.close()


def test_one_refused_run_does_not_keep_another_out(told: Told, other: Workspace, git: Git, tmp_path: Path, scene: Any):
    workspace, run, _ = told
    create_run(workspace, scene.run_started()).close()
    git(workspace.git_dir, "update-ref", "refs/heads/runs/foreign-1", "kbtui/readme")
    report = import_runs(other, workspace.git_dir)
    assert [r.here for r in report.runs] == [run, "softmax-2"]
    assert len(report.refused) == 1


def test_only_the_runs_named_come_in(told: Told, other: Workspace, scene: Any):
    workspace, _, _ = told
    create_run(workspace, scene.run_started()).close()
    assert [r.here for r in import_runs(other, workspace.git_dir, ("softmax-2",)).runs] == ["softmax-2"]
    with pytest.raises(UsageError, match=r"no run 'softmax-9' in .*; it has softmax-1, softmax-2"):
        import_runs(other, workspace.git_dir, ("softmax-9",))


def test_an_engine_at_work_here_is_named_and_nothing_is_touched(told: Told, other: Workspace):
    workspace, _, _ = told
    with EngineLock(other.lock).acquire("rms-3"), pytest.raises(EngineError, match="run rms-3"):
        import_runs(other, workspace.git_dir)
    assert not other.index.exists()


@pytest.mark.parametrize("what", ["missing", "text", "folder", "empty"])
def test_what_is_no_source_is_one_line(what: str, other: Workspace, tmp_path: Path):
    source = tmp_path / what
    if what == "text":
        source.write_text("hello")
    elif what == "folder":
        source.mkdir()
    elif what == "empty":
        create_workspace(source)
    with pytest.raises(UsageError) as raised:
        import_runs(other, source)
    assert str(source) in str(raised.value)
    assert "\n" not in str(raised.value)
