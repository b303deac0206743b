import io
from dataclasses import replace

import pytest
from rich.console import Console

from kbtui.benching.result import Benched, BenchReport
from kbtui.benching.table import render
from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.evaluation import Baseline
from kbtui.domain.measurement import Clock, Comparison, Measurement, Outcome, ShapeRatio, ShapeTiming
from kbtui.domain.verdict import Proof, Reason, rejected, verified
from kbtui.problems import load_problem

SOFTMAX = load_problem("softmax").spec
SHAPE = "4096x16384"
H200 = replace(DATA_SHEETS["h200"], key="cuda:0", clock=Clock.MEASURED)


def shown(report: BenchReport, ascii_only: bool = False) -> str:
    out = io.StringIO()
    Console(file=out, width=200).print(render(report, ascii_only))
    return out.getvalue()


def measured(outcome: Outcome = Outcome.FASTER, unstable: str | None = None) -> Measurement:
    timing = ShapeTiming(SHAPE, 132.0, 131.0, 133.5, 60)
    over = Comparison("eager", outcome, 1.332, 1.32, 1.345, 0.99, 36, 3, (ShapeRatio(SHAPE, 1.29, 1.28, 1.30),))
    return Measurement(Clock.MEASURED, (timing,), (over,), unstable)


def report(*kernels: Benched, baseline: Baseline | None = None) -> BenchReport:
    eager = baseline or Baseline("eager", Measurement(Clock.MEASURED, (ShapeTiming(SHAPE, 170.5, 170, 171, 9),)))
    return BenchReport(SOFTMAX, H200, (eager,), kernels)


def test_a_row_gives_time_interval_share_of_the_bound_and_the_ratio_over_pytorch() -> None:
    text = shown(report(Benched("mine", verified(4, Proof.GPU, "36 checks"), measured())))
    row = next(line for line in text.splitlines() if line.strip().startswith(SHAPE) and "132.00" in line)
    assert "131.00-133.50" in row
    assert "85 %" in row
    assert "1.290× (1.280-1.300)" in row
    assert "1.332× (1.320-1.345) faster" in text
    assert "eager, timed alone: 4096x16384 170.50 us" in text


@pytest.mark.parametrize("outcome", list(Outcome))
def test_a_ratio_is_never_shown_without_what_was_decided(outcome: Outcome) -> None:
    text = shown(report(Benched("mine", verified(4, Proof.GPU, ""), measured(outcome))))
    assert f"(1.320-1.345) {outcome.value}" in text


def test_doubt_about_a_measurement_stands_beside_it() -> None:
    text = shown(report(Benched("mine", verified(4, Proof.GPU, ""), measured(unstable="throttled: power"))))
    assert "unstable: throttled: power" in text


def test_a_rejected_kernel_has_its_reason_and_no_time() -> None:
    text = shown(report(Benched("mine", rejected(Reason.WRONG_VALUES, 1, Proof.GPU, "off by 3"))))
    assert "mine: rejected (wrong_values): off by 3" in text
    assert "of bound" not in text


def test_modelled_times_say_so_and_that_pytorch_is_absent() -> None:
    modelled = replace(measured(), clock=Clock.MODELLED, comparisons=())
    text = shown(
        BenchReport(SOFTMAX, DATA_SHEETS["a100"], (), (Benched("mine", verified(4, Proof.INTERPRETER, ""), modelled),))
    )
    assert "modelled, not measured" in text
    assert "PyTorch is absent" in text


def test_a_baseline_that_could_not_be_timed_says_why() -> None:
    text = shown(report(baseline=Baseline("compile", None, "no C compiler")))
    assert "compile: not timed: no C compiler" in text


def test_ascii_is_ascii() -> None:
    kernel = Benched("mine", verified(4, Proof.GPU, ""), measured(), {SHAPE: (131.0, 132.0, 132.1, 140.0)})
    assert shown(report(kernel), ascii_only=True).isascii()
    assert "4 samples" in shown(report(kernel))
