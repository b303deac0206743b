"""What a person reads of many runs at once: ls, import, reindex. Lines that can be told apart, and no flood of them."""

import re
import shutil
from pathlib import Path

import pytest

from kbtui.commands.care import reindex
from kbtui.commands.leave import NAMED, import_runs
from kbtui.commands.show import list_runs
from kbtui.errors import ExitCode

BUNDLE = Path(__file__).parents[2] / "benchmarks/results/h200-2026-11-30/softmax.bundle"


def test_a_listed_run_says_over_what_its_best_is_and_when_it_began(
    finished: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    list_runs(finished, as_json=False)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("softmax-1 ")
    assert "× over first" in line
    assert "3 candidates" in line
    assert re.search(r"  \d{4}-\d\d-\d\d \d\d:\d\d UTC$", line)


def test_a_bundle_without_artifacts_floods_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert import_runs(tmp_path / "runs", BUNDLE, ()) is ExitCode.DONE
    told = capsys.readouterr()
    assert len(told.out.splitlines()) == 1
    *named, rest = told.err.splitlines()
    assert len(named) == NAMED
    assert "more, which kbtui reindex names" in rest


def test_a_repository_that_is_gone_is_told_once(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = tmp_path / "runs"
    shutil.copytree(finished, workspace)
    shutil.rmtree(workspace / "kernels.git" / "objects")
    assert reindex(workspace) is ExitCode.ENGINE_FAILED
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("kbtui: ")]
    assert len(told) == len(set(told)) == 1
