import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from softmax_problem import make_problem

from kbtui.evaluation.gate.interpreter import InterpreterGate
from kbtui.evaluation.process import Zygote


@pytest.fixture(scope="session")
def zygote(interpreting_zygote: Zygote) -> Zygote:
    return interpreting_zygote


@pytest.fixture(scope="session")
def gate(zygote: Zygote) -> Iterator[InterpreterGate]:
    opened = InterpreterGate(zygote, make_problem(), call_timeout_s=10.0)
    assert opened.open() == "row_softmax"
    yield opened
    opened.close()
