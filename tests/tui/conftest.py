"""Makes the recorded run and the fake source beside this file importable, and isolates the viewer's tests."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fake_source import FakeSource, InlineExecutor, moment_of
from recorded_run import HINTS, RUN, SPEC

from kbtui.domain.problem import Problem, ProblemFormat
from kbtui.tui.app import Viewer, ViewerOptions
from kbtui.tui.moment import Moment

MakeViewer = Callable[..., Viewer]


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal with colours, whatever the tests run in."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setattr("kbtui.tui.app._SAID_FOR_S", 3600.0)  # on a busy machine a test takes longer than a sentence


@pytest.fixture(autouse=True)
def declared_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    """The problem's folder and the hints as they were when the run was recorded."""
    problem = Problem(SPEC, ProblemFormat.FOLDER, "sample_kernels/softmax", "", None)
    monkeypatch.setattr("kbtui.tui.feed.load_problem", lambda _path: problem)
    monkeypatch.setattr("kbtui.tui.feed.load_hints", lambda: HINTS)


@pytest.fixture
def source() -> FakeSource:
    return FakeSource()


@pytest.fixture
def make_viewer(source: FakeSource, tmp_path: Path) -> MakeViewer:
    """A viewer on the fake source that reads in the caller and polls only when told."""

    def make(
        run: str | None = RUN, editor: Callable[[str, str], str | None] | None = None, **options: object
    ) -> Viewer:
        chosen = ViewerOptions(refresh_hz=0.01, copy_folder=tmp_path, **options)  # type: ignore[arg-type]
        return Viewer(source, run, chosen, executor=InlineExecutor(), editor=editor)

    return make


@pytest.fixture
def moment(source: FakeSource) -> Moment:
    return moment_of(source)
