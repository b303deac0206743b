import os
import signal
from contextlib import closing
from pathlib import Path

import pytest

from store import packing
from store.objects import ObjectStore
from store.packing import Packer, pack
from store.record import open_run
from store.workspace import create_workspace

WAIT_S = 30.0


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
    theirs = create_workspace(tmp_path / "ws2", repo=tmp_path / "theirs")
    assert not pack(theirs)
    with closing(Packer(theirs, worth=0)) as packer:
        packer.consider()
        assert packer._process is None


def settle(packer: Packer) -> None:
    """Consider until a pack is complete, as an engine does between its steps."""
    packer.consider()
    while packer._process is not None and packer.n_packs == 0:
        os.waitid(os.P_PID, packer._process.pid, os.WEXITED | os.WNOWAIT)
        packer.consider()


def test_packs_beside_a_ledger_that_goes_on(told, git, scene):
    workspace, run, commits = told
    with closing(open_run(workspace, run)) as ledger, closing(Packer(workspace, worth=0)) as packer:
        ahead = ledger.commit_candidate(9, "not reachable yet\n", (commits[4],), "next", ())
        settle(packer)
        assert packer.n_packs == 1
        assert len(list((workspace.git_dir / "objects" / "pack").glob("*.pack"))) == 1
        assert int(git(workspace.git_dir, "count-objects").split()[0]) == 3  # of the candidate that no branch reaches
        assert ledger.source(commits[2]) == scene.kernel(2, 1)
        assert ledger.source(ahead) == "not reachable yet\n"
        scene.complete(ledger, 4, True, commits[4])
    git(workspace.git_dir, "fsck", "--strict")


def test_what_no_branch_reaches_is_not_tried_again_and_again(told):
    workspace, _, _ = told
    objects = ObjectStore(workspace.git_dir)
    for number in range(200):  # some of them in the one folder that is counted
        objects.write(b"blob", b"%d" % number)
    objects.close()
    with closing(Packer(workspace, worth=256)) as packer:
        settle(packer)
        packer.consider()
        assert packer._process is None


@pytest.fixture
def slow_git(told: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the run is told: a git that packs for longer than any test, in one process."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text("#!/bin/sh\nexec sleep 600\n")
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.usefixtures("slow_git")
def test_stands_still_while_it_is_held_and_goes_on_after(told):
    with closing(Packer(told[0], worth=0)) as packer:
        packer.consider()
        assert packer._process is not None
        with packer.held():
            assert state_of(packer._process.pid) == "T"
            packer.consider()
            assert state_of(packer._process.pid) == "T"
        assert state_of(packer._process.pid) != "T"
        pid = packer._process.pid
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.usefixtures("slow_git")
@pytest.mark.parametrize("held", [False, True])
def test_its_process_dies_with_a_killed_engine_even_where_it_stands_still(told, held, in_child, tmp_path):
    def engine():
        packer = Packer(told[0], worth=0)
        packer.consider()
        assert packer._process is not None
        (tmp_path / "pid").write_text(str(packer._process.pid))
        if held:
            with packer.held():
                os.kill(os.getpid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(engine) == signal.SIGKILL
    pid = int((tmp_path / "pid").read_text())
    for _ in range(int(WAIT_S * 100)):
        if not Path(f"/proc/{pid}").exists() or state_of(pid) == "Z":
            return
        os.sched_yield()
    pytest.fail("it lives on")


def test_git_that_fails_is_not_asked_again(told, tmp_path, monkeypatch, caplog):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    with closing(Packer(told[0], worth=0)) as packer:
        settle(packer)
        packer.consider()
        assert packer._process is None
    assert "no more packing in this run: git ended with 3" in caplog.text


def test_folder_that_a_packing_git_removes_is_made_again(workspace, monkeypatch):
    removed = []

    def mkstemp(prefix, dir):  # noqa: A002
        if not removed:
            removed.append(Path(dir))
            Path(dir).rmdir()
        return real(prefix=prefix, dir=dir)

    real = __import__("tempfile").mkstemp
    monkeypatch.setattr("store.objects.tempfile.mkstemp", mkstemp)
    objects = ObjectStore(workspace.git_dir)
    assert objects.read(objects.write(b"blob", b"x")) == b"x"
    assert removed
    objects.close()
