"""A real zygote, and a tracer in its children."""

from pathlib import Path
from types import ModuleType

import pytest

from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.problem import Problem
from kbtui.evaluation.compile.compiler import describe_inputs
from kbtui.evaluation.modelled.tracing import Tracer
from kbtui.evaluation.process import Zygote
from kbtui.problems import load_problem
from tests.fakes.scripts import load_script


@pytest.fixture(scope="session")
def softmax() -> Problem:
    return load_problem("softmax")


@pytest.fixture(scope="session")
def interpreting(interpreting_zygote: Zygote) -> Zygote:
    return interpreting_zygote


@pytest.fixture(scope="session")
def tracer(interpreting: Zygote, softmax: Problem) -> Tracer:
    return Tracer(interpreting, describe_inputs(interpreting, softmax), DATA_SHEETS["a100"], timeout_s=60.0)


@pytest.fixture(scope="session")
def planted() -> ModuleType:
    """The texts of ``planted_softmax.py``; test folders are no packages, so it is loaded by its path."""
    return load_script(Path(__file__).with_name("planted_softmax.py"))
