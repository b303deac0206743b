"""One finished run, made by the command line and shared by all tests that only read it."""

import subprocess
from pathlib import Path

import pytest

from tests.fakes.commands import kbtui


@pytest.fixture(scope="session")
def searched(tmp_path_factory: pytest.TempPathFactory) -> "tuple[Path, subprocess.CompletedProcess[str]]":
    """A workspace with one whole run in it (its path holds spaces and more), and what the command said."""
    workspace = tmp_path_factory.mktemp("a spaced földer") / "runs"
    done = kbtui("run", "softmax", "--json", "--device", "model:a100", "--candidates", "3", "-w", workspace)
    assert done.returncode in (0, 1), done.stderr
    return workspace, done


@pytest.fixture(scope="session")
def finished(searched: "tuple[Path, subprocess.CompletedProcess[str]]") -> Path:
    return searched[0]
