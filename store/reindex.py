"""Effects: the index rebuilt from the ledger's branches, which hold everything but heartbeats and live samples."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Engine, select

from kbtui.domain.candidate import ArtifactRef
from kbtui.errors import EngineError
from store.index import open_index, reading, set_aside
from store.ledger import RUNS, Entry, RunBranch, run_names
from store.lock import EngineLock
from store.mending import mend_branches
from store.objects import ObjectStore
from store.opening import DamagedIndexError
from store.projection import apply_entry, forget_run
from store.refs import list_refs
from store.tables import ARTIFACT, RUN
from store.tidying import sweep
from store.workspace import Workspace

_BATCH = 2_000


@dataclass(frozen=True, slots=True)
class MissingArtifact:
    run: str
    seq: int
    artifact: ArtifactRef


@dataclass(frozen=True, slots=True)
class ReindexReport:
    """What a rebuild found. ``refused``: one line for each run that was read only up to a commit that is not ours."""

    runs: tuple[str, ...]
    n_events: int
    missing: tuple[MissingArtifact, ...]
    refused: tuple[str, ...]
    set_aside: Path | None


def reindex(workspace: Workspace) -> ReindexReport:
    """Rebuild every run's rows. Raises EngineError while an engine holds the workspace."""
    with EngineLock(workspace.lock).acquire():
        sweep(workspace)
        engine, aside = open_or_rebuild(workspace, rebuild=False)
        try:
            refused = rebuild_all(workspace, engine)
            with engine.begin() as connection:
                runs = connection.execute(select(RUN.c.run, RUN.c.seq)).all()
                missing = tuple(_missing(connection, workspace.artifacts))
        finally:
            engine.dispose()
    names = tuple(sorted(run for run, _ in runs))
    return ReindexReport(names, sum(seq + 1 for _, seq in runs), missing, refused, aside)


def open_or_rebuild(workspace: Workspace, rebuild: bool = True) -> tuple[Engine, Path | None]:
    """The index for the engine; a damaged one is renamed and (``rebuild``) made again. Under the engine's lock.

    What an engine that died had not indexed of any run is indexed now, be it that it died while it made the index.
    """
    mend_branches(workspace.git_dir)
    fresh = not workspace.index.exists()
    aside = None
    try:
        engine = open_index(workspace.index)
    except DamagedIndexError:
        aside, fresh = set_aside(workspace.index), True
        engine = open_index(workspace.index)
    if fresh and rebuild:
        rebuild_all(workspace, engine)
    elif rebuild:
        reconcile_all(workspace, engine)
    return engine, aside


def rebuild_all(workspace: Workspace, engine: Engine) -> tuple[str, ...]:
    """Rows of all runs anew; returns one line for each ledger that could not be read to its end."""
    objects = ObjectStore(workspace.git_dir)
    refused = []
    try:
        names = run_names(workspace.git_dir)
        _forget_others(engine, names)
        for run in names:
            try:
                rebuild_run(engine, RunBranch(objects, run))
            except EngineError as error:
                refused.append(str(error))
    finally:
        objects.close()
    return tuple(refused)


def reconcile_all(workspace: Workspace, engine: Engine) -> None:
    """Bring every run's rows in line with its branch; a ledger with a foreign commit waits for its own resume."""
    with reading(engine) as connection:
        tips = {row.run: row.tip for row in connection.execute(select(RUN.c.run, RUN.c.tip))}
    behind = [ref.removeprefix(RUNS) for ref, tip in list_refs(workspace.git_dir, RUNS).items()
              if tips.get(ref.removeprefix(RUNS)) != tip]  # fmt: skip
    objects = ObjectStore(workspace.git_dir)
    try:
        for run in sorted(behind):
            with contextlib.suppress(EngineError):
                reconcile(engine, RunBranch(objects, run))
    finally:
        objects.close()


def reconcile(engine: Engine, branch: RunBranch) -> None:
    """The ledger is the truth: replay what the index lacks, start anew where the index has what the ledger has not.

    Raises EngineError naming a commit on the branch that is not ours.
    """
    with reading(engine) as connection:
        known = connection.execute(select(RUN.c.tip, RUN.c.seq).where(RUN.c.run == branch.run)).first()
    if known is not None and known.tip == branch.tip:
        return
    if known is not None and branch.holds(known.tip):
        replay(engine, branch, known.tip, known.seq + 1)
    else:
        rebuild_run(engine, branch)


def rebuild_run(engine: Engine, branch: RunBranch) -> None:
    """One run's rows anew. Raises EngineError at a commit that is not ours, with what came before it indexed."""
    with engine.begin() as connection:
        forget_run(connection, branch.run)
    replay(engine, branch, None, 0)


def replay(engine: Engine, branch: RunBranch, since: str | None, from_seq: int) -> None:
    """Index the events after a commit, many in a transaction. Raises EngineError at a commit that is not ours."""
    batch: list[Entry] = []
    try:
        for entry in branch.entries(since, from_seq):
            batch.append(entry)
            if len(batch) == _BATCH:
                written, batch = batch, []
                _write(engine, branch.run, written)
    finally:
        _write(engine, branch.run, batch)


def _write(engine: Engine, run: str, entries: list[Entry]) -> None:
    with engine.begin() as connection:
        for entry in entries:
            apply_entry(connection, run, entry)


def _forget_others(engine: Engine, names: tuple[str, ...]) -> None:
    with engine.begin() as connection:
        known = connection.execute(select(RUN.c.run)).scalars().all()
        for run in set(known) - set(names):
            forget_run(connection, run)


def _missing(connection: Connection, folder: Path) -> Iterator[MissingArtifact]:
    for row in connection.execute(select(ARTIFACT).order_by(ARTIFACT.c.run, ARTIFACT.c.seq, ARTIFACT.c.n)):
        if not (folder / row.sha256).exists():
            yield MissingArtifact(row.run, row.seq, ArtifactRef(row.name, row.sha256))
