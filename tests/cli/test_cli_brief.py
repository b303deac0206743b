"""What status and best say is read off a few events, and is what the whole run says."""

from pathlib import Path

from kbtui.commands.where import brief_result, open_reader
from kbtui.result import run_result


def test_a_brief_result_is_the_runs_result(finished: Path) -> None:
    with open_reader(finished) as reader:
        assert brief_result(reader, "softmax-1") == run_result(reader.state("softmax-1"))
