"""The whole device on a sample: policy, compile, interpreter, modelled times, diagnosis."""

from collections.abc import Iterator
from types import ModuleType

import pytest

from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.evaluation import EvaluationRequest, Opponent, RungOutcome
from kbtui.domain.measurement import Clock, LiveSample, Outcome
from kbtui.domain.problem import Problem
from kbtui.domain.profile import Bottleneck
from kbtui.domain.rung import COMPILE, DEFAULT_LADDER, MEASURE, PROFILE, SCREEN
from kbtui.domain.verdict import Proof, Reason, VerdictKind
from kbtui.evaluation.devices.model import ModelDevice


@pytest.fixture(scope="module")
def device(softmax: Problem, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelDevice]:
    model = ModelDevice(DATA_SHEETS["a100"], tmp_path_factory.mktemp("workspace"))
    report = model.open(softmax)
    assert report.baselines == ()
    assert report.family == "row_softmax"
    yield model
    model.close()


def _evaluate(
    device: ModelDevice,
    source: str,
    rung: int,
    passed: int = -1,
    incumbent: Opponent | None = None,
    first: Opponent | None = None,
) -> tuple[RungOutcome, list[LiveSample]]:
    samples: list[LiveSample] = []
    request = EvaluationRequest("c0002", source, DEFAULT_LADDER[rung], 0, passed, incumbent, first)
    return device.evaluate(request, samples.append).outcome, samples


def test_rung_0_compiles_and_bounds_and_times_nothing(planted: ModuleType, device: ModelDevice) -> None:
    outcome, _ = _evaluate(device, planted.one_pass(8), COMPILE)
    assert outcome.verdict.ok, outcome.verdict
    assert outcome.resources[0].registers > 16
    assert outcome.bound_us == pytest.approx(263.3, rel=0.01)
    assert outcome.measurement is None
    assert outcome.gpu_s == 0.0


def test_a_good_kernel_beats_the_first_one_on_the_model(
    planted: ModuleType, device: ModelDevice, softmax: Problem
) -> None:
    assert softmax.kernel_source is not None
    first = Opponent("c0001", softmax.kernel_source)
    outcome, samples = _evaluate(device, planted.one_pass(8), SCREEN, passed=0, incumbent=first, first=first)
    assert outcome.verdict.ok, outcome.verdict
    assert outcome.verdict.proof is Proof.INTERPRETER
    assert outcome.measurement is not None
    assert outcome.measurement.clock is Clock.MODELLED
    for name in ("c0001", "first"):
        comparison = outcome.measurement.against(name)
        assert comparison is not None
        assert comparison.outcome is Outcome.FASTER
        assert comparison.ratio > 1.4
    assert [s.shape for s in samples] == ["4096x16384"]
    assert samples[0].other_us > samples[0].candidate_us


def test_the_first_kernels_extra_passes_are_diagnosed(device: ModelDevice, softmax: Problem) -> None:
    assert softmax.kernel_source is not None
    outcome, _ = _evaluate(device, softmax.kernel_source, SCREEN, passed=0)
    assert outcome.diagnosis is not None
    assert outcome.diagnosis.findings[0].bottleneck is Bottleneck.EXTRA_PASSES
    assert outcome.diagnosis.source == "model"


def test_the_profile_rung_says_that_nothing_was_profiled_and_why(planted: ModuleType, device: ModelDevice) -> None:
    outcome, _ = _evaluate(device, planted.one_pass(8), PROFILE, passed=2)
    assert outcome.profile is not None
    assert outcome.profile.not_profiled == "no GPU: modelled"
    assert outcome.diagnosis is not None
    assert len(outcome.measurement.timings if outcome.measurement else ()) == 3


def test_a_kernel_that_is_wrong_is_rejected_before_it_is_timed(planted: ModuleType, device: ModelDevice) -> None:
    wrong = planted.one_pass(8).replace("e / tl.sum(e, axis=0)", "e / tl.max(e, axis=0)")
    outcome, _ = _evaluate(device, wrong, MEASURE, passed=0)
    assert outcome.verdict.kind is VerdictKind.REJECTED
    assert outcome.verdict.reason is Reason.WRONG_VALUES
    assert outcome.measurement is None


def test_the_policy_refuses_the_reference_itself(device: ModelDevice) -> None:
    cheat = "import torch\n\n\ndef kernel_function(x):\n    return torch.softmax(x, -1)\n"
    outcome, _ = _evaluate(device, cheat, COMPILE)
    assert outcome.verdict.kind is VerdictKind.REJECTED
    assert outcome.resources == ()
