"""``kbtui profile``: what it prints, what it keeps, and how it ends, on a device that answers at once."""

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
    assert "long scoreboard  #########################.....  83.0 %" in text
    assert "does not fit: 250.7 us under the profiler" in text
    assert "one_read_of_the_row (algorithm)" in text


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
