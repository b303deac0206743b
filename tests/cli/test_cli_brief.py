"""What status and best say is read off a few events, and is what the whole run says."""

from pathlib import Path

import pytest

from kbtui.commands.leave import import_runs
from kbtui.commands.show import best, diff, show
from kbtui.commands.where import brief_result, open_reader
from kbtui.errors import ExitCode, UsageError
from kbtui.result import run_result

BUNDLE = Path(__file__).parents[2] / "benchmarks/results/h200-2026-11-30/softmax.bundle"


@pytest.fixture(scope="module")
def cut_short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a run that its budget ended while candidates waited."""
    workspace = tmp_path_factory.mktemp("imported") / "runs"
    import_runs(workspace, BUNDLE, ())
    return workspace


@pytest.mark.parametrize("workspace", ["finished", "cut_short"])
def test_a_brief_result_is_the_runs_result(workspace: str, request: pytest.FixtureRequest) -> None:
    with open_reader(request.getfixturevalue(workspace)) as reader:
        assert brief_result(reader, "softmax-1") == run_result(reader.state("softmax-1"))


def test_the_best_is_told_with_its_times_beside_pytorch(cut_short: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert best(cut_short, "softmax-1", as_json=False) is ExitCode.DONE
    told = capsys.readouterr().out
    assert "\n  4096x16384 128.0 µs measured, PyTorch eager 171.0 µs\n" in told
    assert "kept:" not in told


def test_the_difference_to_itself_is_said_to_be_none(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(finished, "softmax-1", "first", "c0001") is ExitCode.DONE
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "both are c0001: no difference\n"


def test_a_candidate_that_was_not_tried_is_shown_as_such(cut_short: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_reader(cut_short) as reader:
        state = reader.state("softmax-1")
    untried = [name for name, tried in state.tried.items() if not tried.results]
    assert 0 < len(untried) < len(state.tried)
    for name in ("c0001", "c0015", *untried):
        show(cut_short, "softmax-1", name, as_json=False)
        assert ("not tried before the run ended" in capsys.readouterr().out) == (name in untried)


@pytest.mark.parametrize(("name", "says"), [("c9999", "kbtui log lists them"), ("chmpion", "did you mean champion?")])
def test_a_candidate_is_guessed_only_where_it_is_near(finished: Path, name: str, says: str) -> None:
    with pytest.raises(UsageError, match=f"no such candidate: {name}; {says[:-1]}"):
        show(finished, "softmax-1", name, as_json=False)
