"""export, report, import: what a run leaves for others, and runs from elsewhere. Effects: the store, files."""

import importlib.metadata
import platform
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from kbtui.commands.where import open_reader, pick_candidate, pick_run
from kbtui.console import tell
from kbtui.errors import ExitCode, UsageError
from kbtui.leaving.assemble import one_file
from kbtui.leaving.folder import ArtifactRow, Left, folder_files
from kbtui.leaving.page.page import Shown, report_page
from kbtui.leaving.problem_files import ProblemFiles, find_problem, read_problem_files
from kbtui.scheduler.state import RunState

if TYPE_CHECKING:
    from store.importing import ImportedRun
    from store.reader import Reader

#: Missing artifacts that are named, a run.
NAMED = 3
_LIBRARIES = ("kbtui", "torch", "triton")
#: What an exported check.py is put together of, in the order in which a stranger reads it.
_CHECKER = ("check", "small_parts", "kernels", "verdicts", "times")


def export(workspace: Path, run: str | None, into: Path | None, problem: str | None) -> ExitCode:
    """A folder that stands alone: kernel, reference, check, results, artifacts. What is missing is named on stderr."""
    with open_reader(workspace) as reader:
        name = pick_run(reader, run)
        folder = into or Path(f"{name}-export")
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{folder} exists and is not an empty folder", "name another: --into DIR")
        left = gather(reader, name, problem)
        _write(folder, folder_files(left))
        _copy_artifacts(reader, left, folder / "artifacts")
    best = left.best.candidate
    print(f"{folder}: {best.id} {best.summary}")
    if left.problem is None:
        tell(f"kbtui: the reference and check.py are left out: {left.no_problem}")
    for missing in (a for a in left.artifacts if a.n_bytes is None):
        tell(f"kbtui: artifact {missing.sha256} ({missing.name}) is missing")
    return ExitCode.DONE


def report(workspace: Path, run: str | None, out: Path | None, problem: str | None) -> ExitCode:
    """One HTML page that needs nothing beside it."""
    with open_reader(workspace) as reader:
        name = pick_run(reader, run)
        left = gather(reader, name, problem)
        first = left.state.tried.get(left.state.first or "")
        shown = Shown(
            state=left.state,
            envelopes=left.envelopes,
            best=left.best,
            first=first,
            best_source=left.best_source,
            first_source=left.first_source,
            spec=left.problem.problem.spec if left.problem else None,
            no_problem=left.no_problem,
            exporter=left.exporter,
        )
        page = report_page(shown)
    path = out or Path(f"{name}.html")
    if path.is_dir():
        path = path / f"{name}.html"
    _write(path.parent, {path.name: page})
    print(path)
    return ExitCode.DONE


def import_runs(workspace: Path, source: Path, only: tuple[str, ...]) -> ExitCode:
    """One line a run on stdout; the first artifacts that are nowhere are named on stderr. Exit 4 on a refused run."""
    from store.importing import import_runs as bring_in
    from store.workspace import create_workspace

    told = bring_in(create_workspace(workspace), source, only)
    for run in told.runs:
        print(_line(run))
        for missing in run.missing[:NAMED]:
            tell(f"missing artifact: {run.here} event {missing.seq} {missing.ref.name} {missing.ref.sha256}")
        if len(run.missing) > NAMED:
            where = "a repository and a bundle hold none, a workspace does"
            tell(f"and {len(run.missing) - NAMED} more, which kbtui reindex names: {where}")
    for line in told.refused:
        tell(f"kbtui: {line}")
    return ExitCode.ENGINE_FAILED if told.refused else ExitCode.DONE


def _line(run: "ImportedRun") -> str:
    renamed = f", named {run.here} here" if run.here != run.name else ""
    new = f"{run.n_new} of {run.n_events} events are new" if run.n_new else "nothing new, it is here already"
    told = f"{run.name}{renamed}: {new}"
    artifacts = f", {run.copied} artifacts copied" if run.copied else ""
    return f"{told}{artifacts}" + (f", {len(run.missing)} artifacts missing" if run.missing else "")


def gather(reader: "Reader", run: str, problem: str | None) -> Left:
    """Everything a builder needs of one run, read once. Raises UsageError where it has no candidate yet."""
    state = reader.state(run)
    best = pick_candidate(state, "best")
    first = state.tried.get(state.first or "")
    first_source = reader.source(first.commit) if first else ""
    found, no_problem = _problem(state, first_source, problem)
    return Left(
        state=state,
        envelopes=reader.envelopes(run),
        best=best,
        best_source=reader.source(best.commit),
        first_source=first_source,
        problem=found,
        no_problem=no_problem,
        artifacts=_artifacts(reader, run),
        checker=checker(),
        exporter=exporting_machine(),
    )


def checker() -> str:
    """The text of check.py: one file, put together of the modules beside it."""
    script, *parts = ((files("kbtui.leaving.alone") / f"{name}.py").read_text(encoding="utf-8") for name in _CHECKER)
    return one_file(script, parts)


def exporting_machine() -> dict[str, str]:
    """Python, libraries and system of this process, which need not be those of the run."""
    versions = {}
    for name in _LIBRARIES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "not installed"
    return {"python": platform.python_version(), **versions, "system": platform.platform()}


def _problem(state: RunState, first_source: str, given: str | None) -> tuple[ProblemFiles | None, str]:
    """The problem as the run used it; one that was named and is not the run's is an error, not a gap."""
    try:
        return read_problem_files(find_problem(state, first_source or None, given)), ""
    except UsageError as error:
        if given:
            raise
        return None, str(error)


def _artifacts(reader: "Reader", run: str) -> tuple[ArtifactRow, ...]:
    from store.importing import run_artifacts

    def n_bytes(sha256: str) -> int | None:
        try:
            return len(reader.artifact(sha256))
        except UsageError:
            return None  # missing, or not what its name says

    found = run_artifacts(reader.workspace, run)
    return tuple(ArtifactRow(a.ref.sha256, a.ref.name, a.candidate, a.seq, n_bytes(a.ref.sha256)) for a in found)


def _copy_artifacts(reader: "Reader", left: Left, into: Path) -> None:
    for sha in {a.sha256 for a in left.artifacts if a.n_bytes is not None}:
        (into / sha).write_bytes(reader.artifact(sha))


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    try:
        for relative, text in texts.items():
            path = folder / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8", errors="surrogatepass"))
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror}", "name another place") from error
