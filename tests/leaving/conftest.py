"""Real runs to leave with: a search on an H200 out of its kept bundle, and the shared one on a model of an A100."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kbtui.commands.leave import gather
from kbtui.leaving.folder import Left
from kbtui.leaving.page.page import Shown
from store.importing import import_runs
from store.reader import Reader
from store.workspace import Workspace, create_workspace

ROOT = Path(__file__).parents[2]
BUNDLE = ROOT / "benchmarks/results/h200-2026-11-30/softmax.bundle"


@pytest.fixture(scope="session")
def h200(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Run softmax-1: 49 candidates measured on an H200; none of its artifacts."""
    workspace = create_workspace(tmp_path_factory.mktemp("h200") / "ws")
    import_runs(workspace, BUNDLE)
    return workspace


@pytest.fixture(scope="session")
def h200_left(h200: Workspace) -> Left:
    with Reader(h200) as reader:
        return gather(reader, "softmax-1", None)


@pytest.fixture(scope="session")
def model_run(finished: Path) -> Workspace:
    """Run softmax-1: three candidates on the model of an A100."""
    return create_workspace(finished)


@pytest.fixture
def shown_of() -> Callable[[Left], Shown]:
    return shown


def shown(left: Left) -> Shown:
    """What the command shows of a run."""
    first = left.state.tried.get(left.state.first or "")
    spec = left.problem.problem.spec if left.problem else None
    sources = (left.best_source, left.first_source)
    return Shown(left.state, left.envelopes, left.best, first, *sources, spec, left.no_problem, left.exporter)
