from store import packing
from store.packing import pack
from store.record import open_run
from store.workspace import create_workspace


def test_packed_run_reads_the_same_and_goes_on(told, git, scene, monkeypatch):
    workspace, run, commits = told
    monkeypatch.setattr(packing, "WORTH_PACKING", 0)
    ledger = open_run(workspace, run)
    ahead = ledger.commit_candidate(9, "not reachable yet\n", (commits[4],), "next", ())  # no branch reaches it yet
    assert pack(workspace)
    assert git(workspace.git_dir, "count-objects").startswith("0 objects")
    assert ledger.source(commits[2]) == scene.kernel(2, 1)
    assert ledger.source(ahead) == "not reachable yet\n"
    scene.complete(ledger, 4, True, commits[4])
    ledger.close()
    git(workspace.git_dir, "fsck", "--strict")


def test_few_objects_and_a_users_repository_are_left_as_they_are(told, git, tmp_path, monkeypatch):
    workspace, _, _ = told
    assert not pack(workspace)
    git(tmp_path, "init", "--quiet", "theirs")
    monkeypatch.setattr(packing, "WORTH_PACKING", 0)
    assert not pack(create_workspace(tmp_path / "ws2", repo=tmp_path / "theirs"))
