"""``kbtui profile``: what it prints, what it keeps, and how it ends, on a device that answers at once."""

from dataclasses import replace
from pathlib import Path

import pytest

from kbtui.commands.profile import on_shape, plain, profiled
from kbtui.commands.profile_text import render
from kbtui.domain.candidate import Attachment
from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.evaluation import Evaluated, EvaluationRequest, ProblemReport, RungOutcome
from kbtui.domain.problem import Problem, ShapeRole
from kbtui.domain.profile import Bottleneck, Diagnosis, Evidence, Finding, KernelResources, Profile
from kbtui.domain.rung import COMPILE
from kbtui.domain.verdict import Proof, Reason, Verdict, rejected, verified
from kbtui.errors import UsageError
from kbtui.problems import load_problem

RESOURCES = (KernelResources("softmax_rows", "4096x16384", (4096, 1, 1), 8, 3, 32, 0, 32, 1.0, "warps"),)
FOUND = Diagnosis(
    "Extra passes over memory: 1.9x the bytes the problem needs are moved; 2.2x the problem's bound.",
    (Finding(Bottleneck.EXTRA_PASSES, 0.47, (Evidence("device memory traffic", 1.93, "x the bytes needed"),)),),
    "4096x16384", 250.6, 111.8, "counters",
)  # fmt: skip
COUNTED = Profile(
    "4096x16384",
    (Evidence("lts__throughput.avg.pct_of_peak_sustained_elapsed", 50.0, "%"),),
    (("long_scoreboard", 83.0), ("barrier", 7.0)),
    ("softmax_rows",),
    notes=("250.7 us under the profiler against 900.0 us measured",),
)


class OneAnswer:
    """A device that has the answer to every question."""

    def __init__(self, profile: Profile | None, verdict: Verdict | None = None) -> None:
        self.spec = DATA_SHEETS["h200"]
        self.profile, self.verdict = profile, verdict or verified(1, Proof.GPU)
        self.asked: list[EvaluationRequest] = []

    def open(self, problem: Problem) -> ProblemReport:
        return ProblemReport(problem.spec.family)

    def prefetch(self, source: str) -> None: ...

    def evaluate(self, request: EvaluationRequest, on_sample: object) -> Evaluated:
        self.asked.append(request)
        if request.rung.index == COMPILE:
            return Evaluated(RungOutcome(self.verdict, 0.0, 0.0, RESOURCES))
        outcome = RungOutcome(self.verdict, 0.0, 0.0, RESOURCES, profile=self.profile, diagnosis=FOUND)
        attached = (Attachment("ncu-4096x16384.csv", b"page"), Attachment("ncu-4096x16384.ncu-rep", b"report"))
        return Evaluated(outcome, attached if self.profile and not self.profile.not_profiled else ())

    def close(self) -> None: ...


@pytest.fixture
def problem() -> Problem:
    return on_shape(load_problem("softmax"), None)


def test_a_person_reads_the_sentence_the_numbers_the_stalls_and_what_to_do(problem: Problem, tmp_path: Path) -> None:
    text = render(profiled(OneAnswer(COUNTED), problem, tmp_path, 0))

    assert text.index("Extra passes over memory") < text.index("why warps wait") < text.index("what to do")
    assert "long scoreboard     #########################.....  83.0 %  waits for device memory or L2" in text
    assert "does not fit: 250.7 us under the profiler" in text
    assert "one_read_of_the_row (algorithm)" in text


@pytest.mark.parametrize("width", [60, 72, 80, 100])
def test_it_keeps_to_the_width_of_the_terminal(width: int, problem: Problem, tmp_path: Path) -> None:
    text = render(replace(profiled(OneAnswer(COUNTED), problem, tmp_path, 0), report=None), width)
    assert max(map(len, text.splitlines())) <= width
    assert "83.0 %" in text


def test_numbers_are_written_as_a_person_writes_them_and_one_is_singular(problem: Problem, tmp_path: Path) -> None:
    spilled = Evidence("spilled", 15516.0, "bytes a thread")
    found = profiled(OneAnswer(COUNTED), problem, tmp_path, 0)
    diagnosis = replace(FOUND, findings=(Finding(Bottleneck.SPILLS, 0.66, (spilled,)),))
    one = replace(RESOURCES[0], num_warps=1, spill_bytes=15516)
    text = render(replace(found, outcome=replace(found.outcome, diagnosis=diagnosis, resources=(one,))))
    assert "0.66  spills               spilled 15,516 bytes a thread" in text
    assert "4096 programs of 1 warp, 32 registers a thread, 15,516 bytes spilled" in text


def test_the_kernel_that_was_named_is_named(problem: Problem, tmp_path: Path) -> None:
    found = replace(profiled(OneAnswer(COUNTED), problem, tmp_path, 0), kernel="mine.py")
    assert render(found).startswith("mine.py for softmax, 4096x16384 on H200")
    assert plain(found)["kernel"] == "mine.py"


def test_an_issued_instruction_is_no_wait(problem: Problem, tmp_path: Path) -> None:
    stalls = (("long_scoreboard", 60.0), ("selected", 40.0))
    text = render(profiled(OneAnswer(replace(COUNTED, stalls=stalls)), problem, tmp_path, 0))
    assert "selected" not in text


def test_ncus_report_is_kept_and_its_path_shown(problem: Problem, tmp_path: Path) -> None:
    found = profiled(OneAnswer(COUNTED), problem, tmp_path, 0)

    assert found.report is not None
    assert Path(found.report).read_bytes() == b"report"
    assert found.report in render(found)


def test_without_counters_the_reason_stands_where_they_would(problem: Problem, tmp_path: Path) -> None:
    found = profiled(OneAnswer(Profile("4096x16384", not_profiled="ncu is not installed")), problem, tmp_path, 0)

    assert "not profiled: ncu is not installed" in render(found)
    assert found.report is None


def test_a_kernel_that_the_gate_rejects_is_not_profiled(problem: Problem, tmp_path: Path) -> None:
    device = OneAnswer(COUNTED, rejected(Reason.COMPILE_ERROR, 0, Proof.NONE, "line 7: no such name"))
    text = render(profiled(device, problem, tmp_path, 0))

    assert "rejected by none: compile_error: line 7: no such name" in text
    assert [request.rung.index for request in device.asked] == [COMPILE]


def test_json_has_every_part_by_name(problem: Problem, tmp_path: Path) -> None:
    told = plain(profiled(OneAnswer(COUNTED), problem, tmp_path, 0))

    assert told["diagnosis"]["findings"][0]["bottleneck"] == "extra_passes"
    assert told["profile"]["kernels"] == ["softmax_rows"]
    assert told["hints"][0]["source"]


def test_one_shape_is_timed_the_one_that_is_named(problem: Problem) -> None:
    whole = load_problem("softmax")
    assert [s.name for s in problem.spec.shapes_of(ShapeRole.TUNE)] == ["4096x16384"]
    assert [s.name for s in on_shape(whole, "4096x65536").spec.timed_at(1)] == ["4096x65536"]
    with pytest.raises(UsageError, match="name one of 4096x16384, 16x16384, 4096x65536"):
        on_shape(whole, "3x3")
