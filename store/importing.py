"""Effects: brings runs from another repository, bundle or workspace into this one, after checking every commit.

The source's branches are fetched into a repository of their own first. Only a run whose every commit is kbtui's, and
whose candidates are what their events say, goes on into the workspace, under another name where its own is taken.
"""

import contextlib
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kbtui.domain.candidate import ArtifactRef, Attachment, source_sha
from kbtui.domain.event import CandidateAdmitted, RunStarted
from kbtui.errors import EngineError, UsageError
from store.artifacts import read_artifact, store_artifact
from store.git_process import run_git
from store.ledger import IDENTITY, RUNS, Entry, RunBranch, read_commit, read_source, run_names
from store.lock import EngineLock
from store.objects import ObjectStore
from store.opening import open_for_reading
from store.readme_branch import write_readme_branch
from store.record import next_run_name
from store.refs import list_refs, move_ref
from store.reindex import open_or_rebuild, reconcile
from store.tidying import sweep
from store.workspace import Workspace, open_workspace

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class RunArtifact:
    """A file of an event: which event, which candidate it is about, its name and hash."""

    seq: int
    candidate: str | None
    ref: ArtifactRef


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """One run brought in.

    Attributes:
        name: its name there; ``here`` its name in this workspace.
        n_new: events this workspace did not have; 0 where it had them all.
        copied, missing: artifacts copied from the source, and those neither place has.
    """

    name: str
    here: str
    n_events: int
    n_new: int
    copied: int
    missing: tuple[RunArtifact, ...]


@dataclass(frozen=True, slots=True)
class ImportReport:
    """``refused``: one line for each run that was not brought in, because a commit on it is not kbtui's."""

    runs: tuple[ImportedRun, ...]
    refused: tuple[str, ...]


def import_runs(workspace: Workspace, source: Path, only: tuple[str, ...] = ()) -> ImportReport:
    """Bring in all runs of ``source`` or those named: a repository, a bundle file, or a workspace.

    Raises UsageError where the source has no such run, EngineError while an engine holds this workspace.
    """
    origin = _origin(source)
    imported, refused = [], []
    with EngineLock(workspace.lock).acquire():
        sweep(workspace)
        with _quarantine(workspace, origin.git) as quarantine:
            for name in _chosen(run_names(quarantine.git_dir), only, source):
                try:
                    imported.append(_import(workspace, quarantine, name, origin.artifacts))
                except EngineError as error:
                    refused.append(str(error))
    return ImportReport(tuple(imported), tuple(refused))


def run_artifacts(workspace: Workspace, run: str) -> tuple[RunArtifact, ...]:
    """Every file that a run's events name, in order, whether it is on this machine or not."""
    query = "SELECT seq, candidate, name, sha256 FROM artifact WHERE run = ? ORDER BY seq, n"
    with contextlib.closing(open_for_reading(workspace.index)) as connection:
        rows = connection.execute(query, (run,)).fetchall()
    return tuple(RunArtifact(r["seq"], r["candidate"], ArtifactRef(r["name"], r["sha256"])) for r in rows)


@dataclass(frozen=True, slots=True)
class _Origin:
    """What git fetches from, and the folder of artifacts where the source is a workspace."""

    git: Path
    artifacts: Path | None


def _origin(source: Path) -> _Origin:
    source = source.expanduser().absolute()
    if not source.exists():
        raise UsageError(f"{source} does not exist", "give a repository, a bundle file or a workspace")
    if source.is_file():
        if not _is_bundle(source):
            raise UsageError(f"{source} is not a git bundle", "give a repository, a bundle file or a workspace")
        return _Origin(source, None)
    if (source / "index.sqlite").exists() or (source / "kernels.git").is_dir() or (source / "repository").is_file():
        workspace = open_workspace(source)
        return _Origin(workspace.git_dir, workspace.artifacts)
    return _Origin(source, None)


def _is_bundle(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(16).startswith(b"# v") and path.stat().st_size > 16


@contextlib.contextmanager
def _quarantine(workspace: Workspace, git: Path) -> Iterator[ObjectStore]:
    """A bare repository with the source's runs and nothing else; objects git finds malformed are refused."""
    with tempfile.TemporaryDirectory(prefix="import-", dir=workspace.scratch) as folder:
        git_dir = Path(folder) / "import.git"
        run_git("init", "--quiet", "--bare", "--template=", "--object-format=sha1", str(git_dir))
        run_git("config", "fetch.fsckObjects", "true", git_dir=git_dir)
        _fetch(git_dir, git, f"+{RUNS}*:{RUNS}*")
        objects = ObjectStore(git_dir)
        try:
            yield objects
        finally:
            objects.close()


def _fetch(into: Path, source: Path, refspec: str) -> None:
    options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules")
    try:
        run_git("fetch", *options, "--", str(source), refspec, git_dir=into)
    except EngineError as error:
        do = "give a repository, a bundle file or a workspace"
        if "dubious ownership" in error.what:
            do = "it is another user's: copy it, or have them write a bundle with `git bundle create FILE --all`"
        raise UsageError(f"cannot read {source}: {error.what}", do) from error


def _chosen(found: tuple[str, ...], only: tuple[str, ...], source: Path) -> tuple[str, ...]:
    known = f"it has {', '.join(found)}" if found else "it has no branch runs/NAME"
    unknown = [name for name in only if name not in found]
    if unknown or not found:
        raise UsageError(f"no run {unknown[0]!r} in {source}" if unknown else f"no run in {source}", known)
    return only or found


def _import(workspace: Workspace, quarantine: ObjectStore, name: str, artifacts: Path | None) -> ImportedRun:
    branch = RunBranch(quarantine, name)
    entries = tuple(branch.entries())
    Verification(quarantine, name).check(entries)
    here, n_new = _bring(workspace, quarantine.git_dir, branch, entries)
    _index(workspace, here)
    copied, missing = _copy_artifacts(workspace, here, artifacts)
    return ImportedRun(name, here, len(entries), n_new, copied, missing)


def _bring(workspace: Workspace, git_dir: Path, branch: RunBranch, entries: tuple[Entry, ...]) -> tuple[str, int]:
    """The run's name here and how many of its events are new; moves or makes the branch.

    A run that is here already, under whatever name, is known by its first commit: it goes on from where it was.
    """
    assert branch.tip is not None
    line = [entry.commit for entry in entries]
    for here, tip in _runs_of(workspace.git_dir, line[0]):
        if tip in line:
            _advance(workspace.git_dir, git_dir, branch, here, tip)
            return here, len(line) - 1 - line.index(tip)
        if branch.tip in _first_parents(workspace.git_dir, tip):
            return here, 0
    names = run_names(workspace.git_dir)
    started = entries[0].envelope.event
    assert isinstance(started, RunStarted)
    here = branch.run if branch.run not in names else next_run_name(started.problem, names)
    _advance(workspace.git_dir, git_dir, branch, here, None)
    return here, len(line)


def _advance(into: Path, source: Path, branch: RunBranch, here: str, expected: str | None) -> None:
    """Objects first, then the branch, so that a kill in between leaves nothing that is seen."""
    assert branch.tip is not None
    if branch.tip == expected:
        return
    waiting = f"refs/kbtui/import/{here}"
    _fetch(into, source, f"+{branch.ref}:{waiting}")
    try:
        move_ref(into, RUNS + here, branch.tip, expected)
    finally:
        run_git("update-ref", "-d", waiting, git_dir=into)


def _runs_of(git_dir: Path, root: str) -> Iterator[tuple[str, str]]:
    """Runs here that begin with the commit ``root``, and their tips."""
    for ref, tip in sorted(list_refs(git_dir, RUNS).items()):
        if tip is not None and _first_parents(git_dir, tip)[-1:] == [root]:
            yield ref.removeprefix(RUNS), tip


def _first_parents(git_dir: Path, tip: str) -> list[str]:
    return run_git("rev-list", "--first-parent", tip, git_dir=git_dir).split()


def _index(workspace: Workspace, run: str) -> None:
    engine, _ = open_or_rebuild(workspace)
    objects = ObjectStore(workspace.git_dir)
    try:
        write_readme_branch(objects, datetime.now(UTC))
        reconcile(engine, RunBranch(objects, run))
    finally:
        objects.close()
        engine.dispose()


def _copy_artifacts(workspace: Workspace, run: str, folder: Path | None) -> tuple[int, tuple[RunArtifact, ...]]:
    copied, missing = 0, []
    for artifact in run_artifacts(workspace, run):
        if (workspace.artifacts / artifact.ref.sha256).exists():
            continue
        try:
            content = read_artifact(folder, artifact.ref.sha256) if folder else None
        except UsageError:
            content = None  # missing there too, or not what its name says
        if content is None:
            missing.append(artifact)
        else:
            store_artifact(workspace.artifacts, Attachment(artifact.ref.name, content))
            copied += 1
    return copied, tuple(missing)


class Verification:
    """Whether a run is what its events say, down to the commits they name. ``RunBranch.entries`` has read the events.

    Nothing but event commits and the candidates they admit may be reachable: no other parents, no other trees.
    """

    def __init__(self, objects: ObjectStore, run: str) -> None:
        self._objects = objects
        self._run = run
        self._commits: dict[str, str] = {}
        self._known: set[str] = set()
        self._trees = {objects.write(b"tree", b"")}

    def check(self, entries: tuple[Entry, ...]) -> None:
        """Raises EngineError naming the first commit that is not kbtui's or is not what its event says."""
        if not entries or not isinstance(entries[0].envelope.event, RunStarted):
            raise EngineError(f"runs/{self._run} does not begin with the start of a run", "it is no run of kbtui")
        before: tuple[str, ...] = ()
        for entry in entries:
            self._artifacts(entry)
            if isinstance(entry.envelope.event, CandidateAdmitted):
                self._admitted(entry.envelope.event)
            self._event(entry, before)
            before = (entry.commit,)

    def _artifacts(self, entry: Entry) -> None:
        """Artifacts are files named by their hash: nothing else may be asked for under that name."""
        if not all(_SHA256.fullmatch(ref.sha256) for ref in entry.artifacts):
            raise self._foreign(entry.commit, "names an artifact that no SHA-256 names")

    def _admitted(self, event: CandidateAdmitted) -> None:
        candidate, commit = event.candidate, read_commit(self._objects, event.commit)
        parents = tuple(self._commits.get(p, "") for p in candidate.parents)
        if commit.committer != IDENTITY or commit.parents != parents:
            raise self._foreign(event.commit, f"is not candidate {candidate.id} as kbtui made it")
        if source_sha(read_source(self._objects, event.commit)) != candidate.source_sha:
            raise self._foreign(event.commit, f"does not hold the kernel that candidate {candidate.id} was")
        self._commits[candidate.id] = event.commit
        self._known.add(event.commit)
        self._trees.add(commit.tree)

    def _event(self, entry: Entry, before: tuple[str, ...]) -> None:
        commit = read_commit(self._objects, entry.commit)
        if commit.parents[: len(before)] != before or not set(commit.parents[len(before) :]) <= self._known:
            raise self._foreign(entry.commit, "has a parent that is no candidate of the run")
        if commit.tree not in self._trees:
            raise self._foreign(entry.commit, "holds files that no candidate of the run brought")

    def _foreign(self, oid: str, why: str) -> EngineError:
        title = read_commit(self._objects, oid).message.partition("\n")[0]
        return EngineError(f"commit {oid[:12]} {title!r} on runs/{self._run} {why}", "the run was not brought in")
