"""What status and best say is read off a few events, and is what the whole run says."""

from pathlib import Path

import pytest

from kbtui.commands.show import diff, show
from kbtui.commands.where import brief_result, open_reader
from kbtui.errors import ExitCode, UsageError
from kbtui.result import run_result


def test_a_brief_result_is_the_runs_result(finished: Path) -> None:
    with open_reader(finished) as reader:
        assert brief_result(reader, "softmax-1") == run_result(reader.state("softmax-1"))


def test_the_difference_to_itself_is_said_to_be_none(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(finished, "softmax-1", "first", "c0001") is ExitCode.DONE
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "both are c0001: no difference\n"


def test_a_candidate_that_was_not_tried_is_shown_as_such(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_reader(finished) as reader:
        state = reader.state("softmax-1")
    untried = [name for name, tried in state.tried.items() if not tried.results]
    for name in state.tried:
        show(finished, "softmax-1", name, as_json=False)
        assert ("not tried before the run ended" in capsys.readouterr().out) == (name in untried)


@pytest.mark.parametrize(("name", "says"), [("c9999", "kbtui log lists them"), ("chmpion", "did you mean champion?")])
def test_a_candidate_is_guessed_only_where_it_is_near(finished: Path, name: str, says: str) -> None:
    with pytest.raises(UsageError, match=f"no such candidate: {name}; {says[:-1]}"):
        show(finished, "softmax-1", name, as_json=False)
