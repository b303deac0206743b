"""The user's git world neither changes what we write nor is changed by it."""

import os
from pathlib import Path

import pytest

from kbtui.errors import UsageError
from store.record import create_run, open_run
from store.workspace import create_workspace


def hooks(folder: Path, trace: Path) -> Path:
    """Hooks that leave a trace and fail, so that nothing they are asked about goes through."""
    folder.mkdir(parents=True)
    for name in ("reference-transaction", "pre-commit", "commit-msg", "post-commit", "post-checkout", "pre-auto-gc"):
        (folder / name).write_text(f"#!/bin/sh\necho {name} >> {trace}\nexit 1\n")
        (folder / name).chmod(0o755)
    return folder


def global_configuration(text: str) -> None:
    (Path(os.environ["HOME"]) / ".gitconfig").write_text(text)


def signing(tmp_path, monkeypatch):
    global_configuration("[commit]\ngpgsign = true\n[tag]\ngpgsign = true\n[gpg]\nprogram = /nonexistent/gpg\n")


def hooks_path(tmp_path, monkeypatch):
    global_configuration(f"[core]\nhooksPath = {hooks(tmp_path / 'hooks', tmp_path / 'trace')}\n")


def templates(tmp_path, monkeypatch):
    hooks(tmp_path / "template" / "hooks", tmp_path / "trace")
    global_configuration(f"[init]\ntemplateDir = {tmp_path / 'template'}\ndefaultBranch = trunk\n")
    monkeypatch.setenv("GIT_TEMPLATE_DIR", str(tmp_path / "template"))


def variables(tmp_path, monkeypatch):
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_NAMESPACE", "other")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Someone Else")
    monkeypatch.setenv("GIT_COMMITTER_DATE", "1999-01-01T00:00:00Z")
    monkeypatch.setenv("GIT_DEFAULT_HASH", "sha256")
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'core.bare'='false'")


def no_identity(tmp_path, monkeypatch):
    global_configuration("[user]\nuseConfigOnly = true\n")
    monkeypatch.setenv("EMAIL", "")


def line_endings(tmp_path, monkeypatch):
    global_configuration("[core]\nautocrlf = true\neol = crlf\nsafecrlf = true\nattributesFile = ~/attributes\n")
    (Path(os.environ["HOME"]) / "attributes").write_text("* text eol=crlf\n")


def broken_configuration(tmp_path, monkeypatch):
    global_configuration("[core\nthis is not a configuration\n")


WORLDS = [signing, hooks_path, templates, variables, no_identity, line_endings, broken_configuration]


@pytest.fixture
def undisturbed(tmp_path, scene):
    ledger = create_run(create_workspace(tmp_path / "undisturbed"), scene.run_started(), now=scene.Ticking())
    scene.tell(ledger)
    ledger.close()
    return ledger._branch.tip


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.__name__)
def test_run_is_the_same_commit_in_any_git_world(world, undisturbed, tmp_path, monkeypatch, scene):
    world(tmp_path, monkeypatch)
    workspace = create_workspace(tmp_path / "ws")
    ledger = create_run(workspace, scene.run_started(), now=scene.Ticking())
    scene.tell(ledger)
    ledger.close()
    workspace.index.unlink()
    again = open_run(workspace, ledger.run)
    assert again._branch.tip == undisturbed
    assert len(list(again.events())) == 17
    again.close()
    assert not (tmp_path / "trace").exists()
    assert not (tmp_path / "elsewhere").exists()
    assert not list(workspace.git_dir.glob("hooks/*"))


def theirs(tmp_path, git) -> Path:
    """A repository in the middle of things: a rebase that stopped, a dirty index and work tree, hooks of its own."""
    repo = tmp_path / "theirs"
    git(tmp_path, "init", "--quiet", "--initial-branch=main", "theirs")
    git(repo, "config", "user.name", "User")
    git(repo, "config", "user.email", "user@example.org")
    for text in ("one", "two"):
        (repo / "file").write_text(text)
        git(repo, "add", "file")
        git(repo, "commit", "--quiet", "-m", text)
    git(repo, "checkout", "--quiet", "-b", "side", "HEAD~1")
    (repo / "file").write_text("three")
    git(repo, "commit", "--quiet", "-am", "three")
    with pytest.raises(AssertionError, match="git rebase main"):
        git(repo, "rebase", "main")
    (repo / "staged").write_text("staged")
    git(repo, "add", "staged")
    (repo / "untracked").write_text("untracked")
    hooks_folder = hooks(tmp_path / "their-hooks", tmp_path / "trace")
    git(repo, "config", "core.hooksPath", str(hooks_folder))
    git(repo, "config", "core.logAllRefUpdates", "always")
    return repo


def files_of(repo: Path) -> dict[str, bytes]:
    ours = (".git/objects/", ".git/refs/heads/runs/", ".git/refs/heads/kbtui/")
    found = {str(p.relative_to(repo)): p.read_bytes() for p in repo.rglob("*") if p.is_file()}
    return {name: content for name, content in found.items() if not name.startswith(ours)}


def test_their_repository_gets_our_branches_and_nothing_else(tmp_path, git, scene):
    repo = theirs(tmp_path, git)
    (tmp_path / "trace").unlink(missing_ok=True)
    before, status = files_of(repo), git(repo, "status", "--porcelain")
    ledger = create_run(create_workspace(tmp_path / "ws", repo=repo), scene.run_started())
    scene.tell(ledger)
    ledger.close()
    assert files_of(repo) == before
    assert git(repo, "status", "--porcelain") == status
    assert not (tmp_path / "trace").exists()
    branches = git(repo, "branch", "--list", "--format=%(refname:short)").split("\n")
    assert {"kbtui/readme", "runs/softmax-1", "main", "side"} <= set(branches)
    git(repo, "fsck", "--strict")


def test_their_repository_is_remembered_by_the_workspace(tmp_path, git, scene):
    repo = theirs(tmp_path, git)
    assert create_workspace(tmp_path / "ws", repo=repo).git_dir == repo / ".git"
    assert create_workspace(tmp_path / "ws").git_dir == repo / ".git"
    git(tmp_path, "init", "--quiet", "third")
    with pytest.raises(UsageError, match=r"keeps its kernels in .*theirs"):
        create_workspace(tmp_path / "ws", repo=tmp_path / "third")


def test_linked_work_tree_leads_to_the_repository_it_belongs_to(tmp_path, git):
    repo = theirs(tmp_path, git)
    (tmp_path / "their-hooks" / "reference-transaction").unlink()
    (tmp_path / "their-hooks" / "post-checkout").unlink()
    git(repo, "worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"), "main")
    assert create_workspace(tmp_path / "ws", repo=tmp_path / "linked").git_dir == repo / ".git"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a repository to someone else")
def test_repository_of_another_owner_needs_no_safe_directory(tmp_path, git, scene):
    git(tmp_path, "init", "--quiet", "theirs")
    for path in [tmp_path / "theirs", *(tmp_path / "theirs").rglob("*")]:
        os.chown(path, 12345, 12345)
    ledger = create_run(create_workspace(tmp_path / "ws", repo=tmp_path / "theirs"), scene.run_started())
    assert [envelope.seq for envelope in ledger.events()] == [0]
    ledger.close()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path, git: None, "is not a folder"),
        (lambda path, git: path.mkdir(), "is not a git repository; make one there with `git init`"),
        (lambda path, git: git(path.parent, "init", "-q", "--object-format=sha256", path.name), "objects by SHA-256"),
    ],
)
def test_repository_that_cannot_serve_is_refused_in_one_line(tmp_path, git, make, says):
    make(tmp_path / "theirs", git)
    with pytest.raises(UsageError, match=says):
        create_workspace(tmp_path / "ws", repo=tmp_path / "theirs")
