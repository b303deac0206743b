"""Effects: the folder that holds everything a run leaves: kernels.git, index.sqlite, artifacts, lock, log."""

import getpass
import os
from dataclasses import dataclass
from pathlib import Path

from kbtui.errors import EngineError, UsageError
from store.filesystems import file_system_of, is_network, read_mountinfo
from store.git_process import run_git
from store.lock import EngineLock, LockHolder, lock_holder

__all__ = ["EngineLock", "LockHolder", "Workspace", "create_workspace", "lock_holder", "open_workspace"]

#: File in the workspace that names the user's repository, where ``--repo`` gave one.
_REPO_FILE = "repository"


@dataclass(frozen=True, slots=True)
class Workspace:
    """Paths of one workspace. ``git_dir`` is its own bare ``kernels.git``, or the user's repository (``--repo``)."""

    root: Path
    git_dir: Path

    @property
    def own_repository(self) -> bool:
        return self.git_dir == self.root / "kernels.git"

    @property
    def index(self) -> Path:
        return self.root / "index.sqlite"

    @property
    def lock(self) -> Path:
        return self.root / "engine.lock"

    @property
    def log(self) -> Path:
        return self.root / "engine.log"

    @property
    def artifacts(self) -> Path:
        return self.root / "artifacts"

    @property
    def scratch(self) -> Path:
        return self.root / "scratch"

    @property
    def cache(self) -> Path:
        return self.root / "cache"


def create_workspace(root: Path, repo: Path | None = None) -> Workspace:
    """The workspace at ``root``, made where it is missing; ``repo``: put the branches into this repository instead.

    Raises UsageError on a network file system, a repository that cannot serve, or one other than was given before.
    """
    root = root.absolute()
    refuse_network(root)
    _make_folders(root)
    workspace = Workspace(root, _repository(root, repo))
    if workspace.own_repository and not (workspace.git_dir / "HEAD").exists():
        _init_bare(workspace.git_dir)
    return workspace


def open_workspace(root: Path) -> Workspace:
    """The workspace at ``root``. Raises UsageError where there is none."""
    root = root.absolute()
    git_dir = _repository(root, None)
    if not (git_dir / "HEAD").exists():
        raise UsageError(f"no workspace at {root}", "start a search there with `kbtui run`, or give --workspace DIR")
    return Workspace(root, git_dir)


def refuse_network(root: Path, mountinfo: str | None = None) -> None:
    """Raises UsageError where the path is on a network file system, saying where to go instead."""
    kind = file_system_of(os.path.realpath(root), read_mountinfo() if mountinfo is None else mountinfo)
    if is_network(kind):
        raise UsageError(
            f"workspace {root} is on {kind}, a network file system, where SQLite's locks cannot be trusted",
            f"put it on a local disk: --workspace /var/tmp/kbtui-{getpass.getuser()}, or set KBTUI_WORKSPACE",
        )


def _make_folders(root: Path) -> None:
    try:
        for folder in ("artifacts", "scratch", "cache"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        if not (root / ".gitignore").exists():
            (root / ".gitignore").write_text("*\n")
    except OSError as error:
        raise UsageError(f"cannot make a workspace at {root}: {error.strerror}", "give --workspace DIR") from error


def _init_bare(git_dir: Path) -> None:
    """HEAD names the branch with the README, so that a clone shows it."""
    run_git(
        "init",
        "--quiet",
        "--bare",
        "--template=",
        "--object-format=sha1",
        "--initial-branch=kbtui/readme",
        str(git_dir),
    )


def _repository(root: Path, repo: Path | None) -> Path:
    noted = root / _REPO_FILE
    before = Path(noted.read_text().rstrip("\n")) if noted.exists() else None
    if repo is None:
        return before or root / "kernels.git"
    git_dir = _git_dir_of(repo)
    if before is None and (root / "kernels.git" / "HEAD").exists():
        before = root / "kernels.git"
    if before is not None and before != git_dir:
        raise UsageError(f"workspace {root} keeps its kernels in {before}", "give another --workspace for this --repo")
    noted.write_text(f"{git_dir}\n")
    return git_dir


def _git_dir_of(repo: Path) -> Path:
    """The common git directory of a repository, work tree or linked work tree; gitdb's format of objects and refs."""
    if not repo.is_dir():
        raise UsageError(f"--repo {repo} is not a folder", "give a git repository")
    said = _ask(repo, "rev-parse", "--path-format=absolute", "--git-common-dir")
    if said is None:
        raise UsageError(f"--repo {repo} is not a git repository", "make one there with `git init`")
    if _ask(repo, "config", "--get", "extensions.objectformat") not in (None, "sha1"):
        raise UsageError(f"--repo {repo} names its objects by SHA-256", "give a repository with SHA-1 objects")
    if _ask(repo, "config", "--get", "extensions.refstorage") not in (None, "files"):
        raise UsageError(f"--repo {repo} keeps its refs in a reftable", "give a repository that keeps them as files")
    return Path(said)


def _ask(repo: Path, *args: str) -> str | None:
    try:
        return run_git(*args, cwd=repo).strip()
    except EngineError:
        return None
