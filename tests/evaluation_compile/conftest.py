from collections.abc import Iterator

import pytest

from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.problem import Problem
from kbtui.evaluation.compile.compiler import Compiler, ProblemInputs, describe_inputs
from kbtui.evaluation.process import Zygote
from kbtui.problems import load_problem


@pytest.fixture(scope="session")
def torch_zygote(compiling_zygote: Zygote) -> Zygote:
    return compiling_zygote


@pytest.fixture(scope="session")
def softmax() -> Problem:
    return load_problem("softmax")


@pytest.fixture(scope="session")
def softmax_inputs(torch_zygote: Zygote, softmax: Problem) -> ProblemInputs:
    return describe_inputs(torch_zygote, softmax)


@pytest.fixture(scope="session", params=["a100", pytest.param("h100", marks=pytest.mark.slow)])
def compiler(
    request: pytest.FixtureRequest,
    torch_zygote: Zygote,
    softmax: Problem,
    softmax_inputs: ProblemInputs,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Compiler]:
    cache = tmp_path_factory.mktemp(f"cache_{request.param}")
    with Compiler(torch_zygote, DATA_SHEETS[request.param], softmax, softmax_inputs, cache, workers=2) as made:
        yield made
