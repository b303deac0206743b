"""Without counters, a trace says what a kernel moves; what cannot be traced is not guessed."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.measurement import Clock
from kbtui.domain.problem import Shape, ShapeRole
from kbtui.domain.profile import Bottleneck, KernelResources
from kbtui.evaluation.compile.compiler import describe_inputs
from kbtui.evaluation.process import Zygote
from kbtui.evaluation.profiling.diagnose import diagnose
from kbtui.evaluation.profiling.static_traffic import StaticTraffic
from kbtui.problems import load_problem

CHIP = replace(DATA_SHEETS["h200"], key="cuda:0", clock=Clock.MEASURED)
PROBLEM = load_problem("softmax")
SHAPE: Shape = PROBLEM.spec.shapes_of(ShapeRole.TUNE)[0]
RESOURCES = (KernelResources("softmax_rows", SHAPE.name, (4096, 1, 1), 8, 3, 32, 0, 32, 1.0, "warps", False, 16),)


@pytest.fixture(scope="module")
def traffic(compiling_zygote: Zygote, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StaticTraffic]:
    inputs = describe_inputs(compiling_zygote, PROBLEM)
    traffic = StaticTraffic(PROBLEM.spec, CHIP, inputs, tmp_path_factory.mktemp("traffic") / "interpreter.log")
    yield traffic
    traffic.close()
    traffic.close()


def test_passes_over_memory_are_known_without_a_counter(traffic: StaticTraffic) -> None:
    traced = traffic.of(PROBLEM.kernel_source or "", SHAPE, RESOURCES)
    found = diagnose(PROBLEM.spec, CHIP, SHAPE, 250.6, RESOURCES, None, traced, 1.0)
    assert found.source == "compiled"
    assert found.findings[0].bottleneck is Bottleneck.EXTRA_PASSES


def test_what_cannot_be_followed_is_none(traffic: StaticTraffic) -> None:
    assert traffic.of("def kernel_function(x):\n    raise ValueError('no')\n", SHAPE, ()) is None
