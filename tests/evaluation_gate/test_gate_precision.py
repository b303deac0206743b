"""Products under the interpreter round as a tensor core's do: what fails on the GPU fails here."""

from collections.abc import Iterator

import pytest

from kbtui.domain.problem import Problem
from kbtui.domain.verdict import Reason
from kbtui.evaluation.gate.interpreter import InterpreterGate
from kbtui.evaluation.process import Zygote
from kbtui.problems import load_problem

IEEE = ', input_precision="ieee"'


@pytest.fixture(scope="module")
def problem() -> Problem:
    return load_problem("linear_relu_div")


@pytest.fixture(scope="module")
def linear(zygote: Zygote, problem: Problem) -> Iterator[InterpreterGate]:
    gate = InterpreterGate(zygote, problem)
    gate.open()
    yield gate
    gate.close()


@pytest.mark.parametrize("precision", ["", ', input_precision="tf32"', ", allow_tf32=True"])
def test_one_pass_tf32_is_no_fp32(linear: InterpreterGate, problem: Problem, precision: str) -> None:
    assert problem.kernel_source is not None
    assert IEEE in problem.kernel_source
    verdict = linear.check(problem.kernel_source.replace(IEEE, precision), 1, seed=3)
    assert verdict.reason is Reason.WRONG_VALUES, verdict


@pytest.mark.parametrize("precision", [IEEE, ', input_precision="tf32x3"'])
def test_exact_and_three_pass_products_pass(linear: InterpreterGate, problem: Problem, precision: str) -> None:
    assert problem.kernel_source is not None
    verdict = linear.check(problem.kernel_source.replace(IEEE, precision), 1, seed=3)
    assert verdict.ok, verdict
