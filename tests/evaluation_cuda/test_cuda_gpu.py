"""What needs a GPU: shared device memory, the timing loop, the confined launch, and the device on a small softmax."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from host_device import rung
from softmax_problem import CHEATS, HONEST, kernel, make_problem

from kbtui.domain.evaluation import Evaluated, EvaluationRequest, Opponent, ProblemReport
from kbtui.domain.measurement import Outcome
from kbtui.domain.rung import Rung
from kbtui.domain.verdict import Reason
from kbtui.evaluation.devices import resolve_auto
from kbtui.evaluation.devices.cuda import CudaDevice
from kbtui.evaluation.nvml import parent_of

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(resolve_auto() != "cuda:0", reason="no NVIDIA GPU here"),
]

PLAIN = HONEST["plain"]
TWICE = kernel("launch(x, torch.empty_like(x))\nreturn launch(x, torch.empty_like(x))")
OUT_OF_BOUNDS = PLAIN.replace("out_ptr + row * n_cols", "out_ptr + (row + 1).to(tl.int64) * 274877906944")


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[CudaDevice, ProblemReport]]:
    device = CudaDevice("cuda:0", tmp_path_factory.mktemp("gpu"), call_timeout_s=3.0, spares=2)
    try:
        yield device, device.open(make_problem(rows=2048))
    finally:
        device.close()


def evaluate(
    device: CudaDevice, source: str, at: Rung, incumbent: str | None = None, passed_stage: int = 0
) -> Evaluated:
    rival = Opponent("c0001", incumbent) if incumbent else None
    return device.evaluate(EvaluationRequest("c0002", source, at, 3, passed_stage, rival, rival), lambda _: None)


def test_opening_reads_the_chip_and_times_pytorch(opened: tuple[CudaDevice, ProblemReport]) -> None:
    device, report = opened
    assert device.spec.n_sms > 0
    assert device.spec.uuid is not None
    assert 0.5 < device.spec.launch_us < 50
    eager = report.baselines[0]
    assert eager.measurement is not None, eager.error
    assert report.family == "row_softmax"


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_kernel_is_verified_and_timed(opened: tuple[CudaDevice, ProblemReport], name: str) -> None:
    found = evaluate(opened[0], HONEST[name], rung(1))
    assert found.outcome.verdict.ok, found.outcome.verdict
    assert found.outcome.measurement is not None
    bound_us = found.outcome.bound_us or 0.0
    assert found.outcome.measurement.timings[0].device_us > 0.8 * bound_us


@pytest.mark.parametrize(
    "name", [n for n in CHEATS if n not in ("dies", "numpy computes, a kernel runs for show", "no entry point")]
)
def test_a_cheat_is_rejected_on_the_gpu_too(opened: tuple[CudaDevice, ProblemReport], name: str) -> None:
    source, reason = CHEATS[name]
    static = evaluate(opened[0], source, rung(0), passed_stage=-1).outcome.verdict
    verdict = static if not static.ok else evaluate(opened[0], source, rung(1)).outcome.verdict
    assert not verdict.ok
    assert not static.ok or verdict.reason == reason, verdict


def test_half_the_work_is_found_faster(opened: tuple[CudaDevice, ProblemReport]) -> None:
    found = evaluate(opened[0], PLAIN, rung(2), incumbent=TWICE)
    assert found.outcome.measurement is not None, found.outcome.verdict
    against = found.outcome.measurement.comparisons[0]
    assert against.outcome is Outcome.FASTER
    assert 1.3 < against.ratio < 3.0


def test_the_same_kernel_is_not_found_faster(opened: tuple[CudaDevice, ProblemReport]) -> None:
    for i in range(3):
        found = evaluate(opened[0], f"{PLAIN}\n# {i}", rung(2), incumbent=PLAIN)
        assert found.outcome.measurement is not None, found.outcome.verdict
        assert found.outcome.measurement.comparisons[0].outcome is not Outcome.FASTER


def test_an_illegal_access_dies_alone(opened: tuple[CudaDevice, ProblemReport]) -> None:
    assert evaluate(opened[0], OUT_OF_BOUNDS, rung(1)).outcome.verdict.reason is Reason.CRASHED
    assert evaluate(opened[0], PLAIN, rung(1)).outcome.verdict.ok


def test_confirmation_compares_with_pytorch_in_fresh_processes(opened: tuple[CudaDevice, ProblemReport]) -> None:
    found = evaluate(opened[0], PLAIN, rung(4, max_pairs=4), incumbent=TWICE)
    assert found.outcome.measurement is not None, found.outcome.verdict
    eager = found.outcome.measurement.against("eager")
    assert eager is not None
    assert eager.n_processes == 3
    assert found.outcome.measurement.against("first") is not None


def test_no_child_is_left_but_spares_referee_and_incumbents(opened: tuple[CudaDevice, ProblemReport]) -> None:
    zygote = opened[0]._zygote
    assert opened[0]._opened is not None
    n_kept = len(opened[0]._opened.sides._kept)
    with zygote.quiet():  # no spare starts, and whoever was let go has ended
        children = sum(p.isdigit() and parent_of(int(p)) == zygote.pid for p in os.listdir("/proc"))
    beside = 2  # the referee, and who builds launchers
    assert children <= opened[0]._spares[0] + beside + n_kept
    assert n_kept <= 2


def test_a_closed_device_leaves_nothing(tmp_path: Path) -> None:
    device = CudaDevice("cuda:0", tmp_path, spares=1)
    zygote = device._zygote.pid
    device.close()
    assert parent_of(zygote) is None
