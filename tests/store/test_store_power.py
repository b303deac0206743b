"""A power loss cuts off what was not yet on the disk for certain: it is mended when it is written again, or named."""

import logging
import zlib

import pytest

from kbtui.domain.candidate import Candidate, Origin, source_sha
from kbtui.domain.event import CandidateAdmitted
from kbtui.errors import EngineError
from store.git_process import run_git
from store.ledger import read_commit
from store.reader import Reader
from store.record import create_run, open_run
from store.reindex import reindex

KINDS = ("blob", "tree", "commit", "event")
SOURCE = "def kernel_function(x):\n    return x  # the one that was lost\n"


def object_path(workspace, oid):
    return workspace.git_dir / "objects" / oid[:2] / oid[2:]


def kind_of(path):
    """``blob``, ``tree``, ``commit`` of a candidate, or ``event``."""
    whole = zlib.decompress(path.read_bytes())
    return "event" if b'"seq":' in whole else whole.split()[0].decode()


def cut(path, how):
    """A file as a journaling file system may leave it: empty, half written, or its blocks never written."""
    path.chmod(0o644)
    whole = path.read_bytes()
    path.write_bytes({"empty": b"", "half": whole[: len(whole) // 2], "zeros": b"\0" * len(whole)}[how])


def admit(ledger):
    candidate = Candidate("c0005", source_sha(SOURCE), (), Origin("playbook", "x"), "s", "lost and found")
    commit = ledger.commit_candidate(5, SOURCE, (), "lost and found", ())
    return commit, lambda: ledger.append(CandidateAdmitted(candidate, 1, commit), 9, 6)


def read_all(workspace, run, commit):
    ledger = open_run(workspace, run)
    try:
        ledger.source(commit)
    finally:
        ledger.close()


def parts(workspace, commit, event):
    """The objects of a candidate and its event by kind."""
    found = run_git("rev-parse", f"{commit}:kernel.py", f"{commit}^{{tree}}", git_dir=workspace.git_dir).split()
    return dict(zip(KINDS, (*found, commit, event), strict=True))


@pytest.mark.parametrize("how", ["empty", "half", "zeros"])
@pytest.mark.parametrize("kind", KINDS)
def test_objects_cut_off_before_a_branch_named_them_are_written_anew(kind, how, told, scene, in_child, git):
    workspace, run, _ = told
    clock = scene.Ticking()
    at_s = clock.at

    def engine():
        ledger = open_run(workspace, run, now=clock, checkpoint=lambda step: scene.die() if step == "objects" else None)
        admit(ledger)[1]()

    before = set((workspace.git_dir / "objects").rglob("*/*"))
    assert in_child(engine) == 9
    written = set((workspace.git_dir / "objects").rglob("*/*")) - before
    cut({kind_of(path): path for path in written}[kind], how)
    clock.at = at_s
    ledger = open_run(workspace, run, now=clock)
    commit, append = admit(ledger)
    append()
    assert ledger.source(commit) == SOURCE
    ledger.close()
    git(workspace.git_dir, "fsck", "--strict", "--no-dangling")
    assert git(workspace.git_dir, "show", f"{commit}:kernel.py") == SOURCE


@pytest.mark.parametrize("kind", KINDS)
def test_objects_that_a_branch_names_are_missed_by_name_and_nothing_is_lost_besides(kind, told):
    """Only a disk that forgot what it had synced can do this."""
    workspace, run, _ = told
    ledger = open_run(workspace, run)
    commit, append = admit(ledger)
    append()
    tip = run_git("rev-parse", f"runs/{run}", git_dir=workspace.git_dir).strip()
    oid = parts(workspace, commit, tip)[kind]
    n_events = len(list(ledger.events()))
    ledger.close()
    cut(object_path(workspace, oid), "half")
    with pytest.raises(EngineError, match=f"git object {oid} is missing or damaged"):
        read_all(workspace, run, commit)
    if kind == "event":
        assert any(oid in line for line in reindex(workspace).refused)
    with Reader(workspace) as reader:
        assert len(reader.envelopes(run)) == n_events


@pytest.mark.parametrize("content", [b"", b"\0" * 41], ids=["empty", "zeros"])
@pytest.mark.parametrize("indexed", [True, False], ids=["index there", "index gone too"])
def test_a_branch_left_empty_goes_back_to_its_last_event(content, indexed, told, git, caplog):
    workspace, run, _ = told
    ref = workspace.git_dir / "refs/heads/runs" / run
    tip = ref.read_text().strip()
    with Reader(workspace) as reader:
        events = reader.envelopes(run)
    ref.write_bytes(content)
    if not indexed:
        workspace.index.unlink()
    with caplog.at_level(logging.WARNING):
        ledger = open_run(workspace, run)
    assert list(ledger.events()) == events
    ledger.close()
    assert git(workspace.git_dir, "rev-parse", f"runs/{run}").strip() == tip
    assert f"branch runs/{run} named no commit; it is back at its last event, {tip[:12]}" in caplog.text


def test_a_branch_left_empty_is_mended_by_reindex_and_by_the_next_run_too(told, scene):
    workspace, run, _ = told
    ref = workspace.git_dir / "refs/heads/runs" / run
    tip = ref.read_text()
    ref.write_bytes(b"")
    assert reindex(workspace).runs == (run,)
    assert ref.read_text() == tip
    ref.write_bytes(b"")
    create_run(workspace, scene.run_started()).close()
    assert ref.read_text() == tip


def test_a_branch_left_empty_with_none_of_its_events_there_is_named(told):
    workspace, run, _ = told
    ref = workspace.git_dir / "refs/heads/runs/softmax-9"
    ref.write_bytes(b"")
    with pytest.raises(EngineError, match=r"branch runs/softmax-9 in .* names no commit; fetch it from a copy"):
        open_run(workspace, run)


def test_a_readme_branch_left_empty_is_written_anew(told, scene, git):
    workspace, _, _ = told
    (workspace.git_dir / "refs/heads/kbtui/readme").write_bytes(b"")
    create_run(workspace, scene.run_started()).close()
    assert "# Kernels found by kbtui" in git(workspace.git_dir, "show", "kbtui/readme:README.md")


def test_an_artifact_cut_off_is_noticed_when_it_is_read(told):
    workspace, run, _ = told
    with Reader(workspace) as reader:
        ref = reader.artifacts(run, "c0001")[0]
        (workspace.artifacts / ref.sha256).write_bytes(b"us")
        with pytest.raises(Exception, match="is damaged"):
            reader.artifact(ref.sha256)


def test_an_index_cut_off_is_set_aside_and_rebuilt(told):
    workspace, run, _ = told
    with Reader(workspace) as reader:
        events = reader.envelopes(run)
    for companion in ("-wal", "-shm"):
        workspace.index.with_name(f"index.sqlite{companion}").unlink(missing_ok=True)
    whole = workspace.index.read_bytes()
    workspace.index.write_bytes(whole[: len(whole) // 2])
    ledger = open_run(workspace, run)
    assert list(ledger.events()) == events
    ledger.close()
    assert list(workspace.root.glob("index.sqlite.damaged-*"))
    assert read_commit(ledger._branch.objects, ledger._branch.tip).oid == ledger._branch.tip
