"""Shared by the generation tests: requests to propose on, and runners of kernels in child processes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbtui.domain.candidate import Candidate, Origin, source_sha
from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.proposal import Phase, ProposalRequest
from kbtui.problems import load_problem

CHILD = Path(__file__).parent / "kernel_child.py"
ROOT = Path(__file__).parents[2]
Job = dict[str, Any]


def run_child(arguments: list[str], jobs: list[Job], **environment: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, str(CHILD), *arguments],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        timeout=900,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="session")
def interpret() -> Callable[[list[Job]], list[dict[str, Any]]]:
    """Relative L2 error of each job's kernel in Triton's interpreter."""
    return lambda jobs: run_child(["interpret"], jobs, TRITON_INTERPRET="1")


@pytest.fixture(scope="session")
def run_on_gpu() -> Callable[[list[Job]], list[dict[str, Any]]]:
    """Relative L2 error of each job's kernel on the GPU."""
    return lambda jobs: run_child(["gpu"], jobs, TRITON_INTERPRET="0")


@pytest.fixture(scope="session")
def compile_for(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, list[Job]], list[dict[str, Any]]]:
    """Resources of each job's kernels compiled for an architecture, with no GPU."""
    cache = str(tmp_path_factory.mktemp("triton-cache"))
    return lambda arch, jobs: run_child(["compile", str(arch)], jobs, TRITON_INTERPRET="0", TRITON_CACHE_DIR=cache)


@pytest.fixture(scope="session")
def request_for_factory() -> Callable[..., ProposalRequest]:
    """A proposal request on a sample problem; keywords replace its fields. ``source`` gives it a parent."""

    def build(problem_name: str, **changes: Any) -> ProposalRequest:
        problem = load_problem(problem_name)
        source = changes.pop("source", None)
        structure = changes.pop("structure", "first")
        parent = (
            Candidate("c0001", source_sha(source), (), Origin("seed", "seed"), structure, "parent") if source else None
        )
        fields: dict[str, Any] = {
            "problem": problem,
            "family": problem.spec.family,
            "device": DATA_SHEETS["a100"],
            "parent": parent,
            "parent_source": source,
            "diagnosis": None,
            "hints": (),
            "siblings": (),
            "seen": frozenset(),
            "phase": Phase.COARSE,
            "limit": 8,
            "seed": 0,
        }
        return ProposalRequest(**{**fields, **changes})

    return build


@pytest.fixture(scope="session")
def request_for(request_for_factory: Callable[..., ProposalRequest]) -> Callable[..., ProposalRequest]:
    return request_for_factory
