import io
from dataclasses import replace

import pytest
from rich.console import Console

from kbtui.benching.result import Benched, BenchReport
from kbtui.benching.table import plain, render
from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.evaluation import Baseline
from kbtui.domain.measurement import Clock, Comparison, Measurement, Outcome, ShapeRatio, ShapeTiming
from kbtui.domain.verdict import Proof, Reason, rejected, verified
from kbtui.problems import load_problem

SOFTMAX = load_problem("softmax").spec
SHAPE = "4096x16384"
H200 = replace(DATA_SHEETS["h200"], key="cuda:0", clock=Clock.MEASURED)


def shown(report: BenchReport, ascii_only: bool = False) -> str:
    return plain(report, ascii_only)


def on_terminal(report: BenchReport, width: int, ascii_only: bool = False) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(render(report, width, ascii_only))
    return out.getvalue().splitlines()


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


LONG = "64x64x256x256"
NUMBERS = (
    "768.45",
    "761.20",
    "775.30",
    "2.104",
    "2.100",
    "2.108",
    "1.615",
    "1.612",
    "1.618",
    "1.667",
    "1.664",
    "1.670",
)


def wide_report() -> BenchReport:
    """Two comparisons and a long shape name, as of rms_norm on a GPU."""
    problem = load_problem("rms_norm").spec
    timing = ShapeTiming(LONG, 768.45, 761.2, 775.3, 192)

    def over(name: str, one: tuple[float, float, float], all_: tuple[float, float, float]) -> Comparison:
        return Comparison(name, Outcome.FASTER, *all_, 0.99, 36, 3, (ShapeRatio(LONG, *one),))

    eager = over("eager", (2.104, 2.1, 2.108), (1.667, 1.664, 1.67))
    compiled = over("compile", (1.615, 1.612, 1.618), (1.275, 1.273, 1.277))
    timed = Measurement(Clock.MEASURED, (timing,), (eager, compiled))
    samples = {LONG: tuple(768.0 + i / 10 for i in range(192))}
    return BenchReport(problem, H200, (), (Benched("first", verified(4, Proof.GPU, "31 checks"), timed, samples),))


def test_a_pipe_gets_the_whole_table_whatever_the_terminal_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = plain(wide_report()).splitlines()
    row = next(line for line in lines if line.strip().startswith(LONG))
    assert all(number in row for number in NUMBERS[:9])
    assert "…" not in plain(wide_report())
    assert lines == [line.rstrip() for line in lines]


@pytest.mark.parametrize("width", [40, 60, 79, 80, 99, 100, 120, 200])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_no_number_is_cut_on_a_terminal_of_any_width(width: int, ascii_only: bool) -> None:
    lines = on_terminal(wide_report(), width, ascii_only)
    assert max(map(len, lines)) <= width
    assert "…" not in "".join(lines)
    assert [n for n in NUMBERS if not any(n in line for line in lines)] == []


def test_a_narrow_terminal_gets_a_block_a_shape_and_a_wide_one_a_table() -> None:
    narrow = [line.rstrip() for line in on_terminal(wide_report(), 80)]
    assert "  over compile  1.615× (1.612-1.618)" in narrow
    assert "  over eager    1.667× (1.664-1.670) faster" in narrow[narrow.index("all") :]
    assert any("of bound" in line and "over eager" in line for line in on_terminal(wide_report(), 140))


def test_a_time_without_comparisons_is_stacked_too() -> None:
    kernel = Benched("mine", verified(4, Proof.GPU, ""), replace(measured(), comparisons=()))
    assert "  time      132.00 us (131.00-133.50)" in [line.rstrip() for line in on_terminal(report(kernel), 40)]
