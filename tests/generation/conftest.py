"""Shared by the generation tests: requests to propose on, and runners of kernels in child processes."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
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


class KernelChild:
    """``kernel_child.py`` in a process of its own, started when it is first asked: its start takes seconds."""

    def __init__(self, arguments: list[str], log: Path, **environment: str) -> None:
        self._command = [sys.executable, str(CHILD), *arguments]
        self._log, self._environment = log, {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        self._process: subprocess.Popen[str] | None = None

    def ask(self, jobs: list[Job]) -> list[dict[str, Any]]:
        if self._process is None or self._process.poll() is not None:
            self._process = self._start()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        patience = threading.Timer(900.0, self._process.kill)
        patience.daemon = True
        patience.start()
        try:
            self._process.stdin.write(json.dumps(jobs) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        finally:
            patience.cancel()
        assert answer, self._log.read_text(errors="replace")[-2000:]
        return json.loads(answer)

    def _start(self) -> "subprocess.Popen[str]":
        pipe = subprocess.PIPE
        with self._log.open("w") as log:
            return subprocess.Popen(
                self._command, stdin=pipe, stdout=pipe, stderr=log, text=True, env=self._environment
            )

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()


@pytest.fixture(scope="session")
def kernel_child(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., KernelChild]]:
    """The child for these arguments; they end with the session."""
    folder, children = tmp_path_factory.mktemp("kernel-child"), {}

    def child(*arguments: str) -> KernelChild:
        if arguments not in children:
            interpret = "1" if arguments == ("interpret",) else "0"
            environment = {"TRITON_CACHE_DIR": str(folder / "triton-cache"), "TMPDIR": str(folder)}
            log = folder / f"{'-'.join(arguments)}.log"
            children[arguments] = KernelChild(list(arguments), log, TRITON_INTERPRET=interpret, **environment)
        return children[arguments]

    yield child
    for started in children.values():
        started.close()


@pytest.fixture(scope="session")
def interpret(kernel_child: Callable[..., KernelChild]) -> Callable[[list[Job]], list[dict[str, Any]]]:
    """Relative L2 error of each job's kernel in Triton's interpreter."""
    return lambda jobs: kernel_child("interpret").ask(jobs)


@pytest.fixture(scope="session")
def run_on_gpu(kernel_child: Callable[..., KernelChild]) -> Callable[[list[Job]], list[dict[str, Any]]]:
    """Relative L2 error of each job's kernel on the GPU."""
    return lambda jobs: kernel_child("gpu").ask(jobs)


@pytest.fixture(scope="session")
def compile_for(kernel_child: Callable[..., KernelChild]) -> Callable[[int, list[Job]], list[dict[str, Any]]]:
    """Resources of each job's kernels compiled for an architecture, with no GPU."""
    return lambda arch, jobs: kernel_child("compile", str(arch)).ask(jobs)


@pytest.fixture(scope="session")
def ttir_for(kernel_child: Callable[..., KernelChild]) -> Callable[[int, list[Job]], list[dict[str, Any]]]:
    """Triton's first intermediate code of each job's kernels for an architecture, with no GPU."""
    return lambda arch, jobs: kernel_child("ttir", str(arch)).ask(jobs)


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
