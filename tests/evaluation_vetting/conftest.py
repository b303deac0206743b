"""The vetting role in this process: what a child of the zygote would do, without starting one."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.problem import Problem
from kbtui.domain.verdict import Proof
from kbtui.domain.vetting import Vetting
from kbtui.evaluation.process import WorkerError
from kbtui.evaluation.vetting import role
from kbtui.evaluation.vetting.vet import vet


@dataclass
class Reply:
    value: Any


class InThisProcess:
    """Stands for a zygote and its worker."""

    @contextmanager
    def spawn(self, name: str, sandbox: None) -> Iterator["InThisProcess"]:
        assert name == role.__name__
        self._methods = role.make(())
        yield self

    def call(self, method: str, timeout_s: float, **params: Any) -> Reply:
        try:
            return Reply(self._methods[method](**params))
        except Exception as error:
            raise WorkerError(type(error).__name__, str(error), "", None) from error


@pytest.fixture
def vetted():
    """Vet a problem on model:a100."""
    grad, threads = torch.is_grad_enabled(), torch.get_num_threads()

    def run(problem: Problem, allclose: float | None = None, proof: Proof = Proof.INTERPRETER) -> Vetting:
        return vet(InThisProcess(), problem, DATA_SHEETS["a100"], proof, allclose)

    yield run
    torch.set_grad_enabled(grad)
    torch.set_num_threads(threads)
