"""Who is measured, what is kept of it, and what speaks against a champion on an A100."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.six.a100 import fault_of, too_much
from benchmarks.six.contest import Contestants, Entrant, Terms, hold, pairs, readings
from benchmarks.six.marks import Marks
from benchmarks.six.record import read_records, write_record
from kbtui.domain.candidate import Attachment, Candidate, Origin
from kbtui.domain.device import DeviceSpec
from kbtui.domain.evaluation import Baseline, Evaluated, EvaluationRequest, ProblemReport, RungOutcome
from kbtui.domain.event import Decision, RungCompleted
from kbtui.domain.measurement import Clock, Comparison, Measurement, Outcome, ShapeRatio, ShapeTiming
from kbtui.domain.problem import Problem
from kbtui.domain.profile import Diagnosis
from kbtui.domain.verdict import Proof, Reason, rejected, unverified, verified
from kbtui.engine.ports import SampleSink
from kbtui.errors import EngineError
from kbtui.evaluation.compile.report import CompileReport
from kbtui.scheduler.state import Tried
from tests.bench_six.six_records import H200, RESOURCES, against, case, contest, record

SHAPE = "4096x16384"
TERMS = Terms(SHAPE, seed=3, n_pairs=12, n_processes=3, command="python benchmarks/bench_six.py")


class TimedDevice:
    """Passes all but the sources named; every opponent is twice as slow as the candidate, on one process pair."""

    def __init__(self, wrong: tuple[str, ...] = (), breaks: str = "") -> None:
        self.spec: DeviceSpec = H200
        self.wrong, self.breaks = wrong, breaks
        self.left_out: list[str] = []
        self.asked: list[EvaluationRequest] = []

    def open(self, problem: Problem) -> ProblemReport:
        return ProblemReport(None)

    def prefetch(self, source: str) -> None: ...

    def close(self) -> None: ...

    def leave_out(self, baseline: str) -> None:
        self.left_out.append(baseline)

    def evaluate(self, request: EvaluationRequest, on_sample: SampleSink) -> Evaluated:
        self.asked.append(request)
        if request.source in self.wrong:
            return Evaluated(RungOutcome(rejected(Reason.WRONG_VALUES, 2, Proof.GPU, "off by 0.3"), 0.0, 0.0))
        outcome = RungOutcome(verified(4, Proof.GPU, "all shapes"), 1.0, 1.0)
        if request.rung.max_pairs == 0:
            return Evaluated(outcome)
        if self.breaks and self.breaks not in self.left_out:
            said = unverified(Reason.HARNESS_FAILED, 4, Proof.GPU, f"{self.breaks}: died of signal 9")
            return Evaluated(replace(outcome, verdict=said))
        names = [*("draft" for _ in [request.incumbent] if _), *("first" for _ in [request.first] if _), "eager"]
        found = tuple(
            Comparison(n, Outcome.FASTER, 9.0, 8.0, 10.0, 0.99, 2, 1, (ShapeRatio(SHAPE, 2.0, 1.9, 2.1),))
            for n in names
        )
        timing = ShapeTiming(SHAPE, 100.0, 99.0, 101.0, 8, 120.0)
        taken = [{"candidate": [99.0, 101.0], "other": [200.0, 204.0]}]
        raw = {"processes": [{n: {SHAPE: taken} for n in names}], "sensors": [{"sm_mhz": 1900}, {"sm_mhz": 1980}]}
        kept = Attachment("samples-c0002-r4.json", json.dumps(raw).encode())
        return Evaluated(replace(outcome, measurement=Measurement(Clock.MEASURED, (timing,), found)), (kept,))


def entrant(name: str, score: float = 1.0) -> Entrant:
    candidate = Candidate(name, name, (), Origin("playbook", f"structure_{name}"), f"s/{name}", f"kernel {name}")
    return Entrant(Tried(candidate, "commit", 1, 1), f"# {name}\n")


def silent(_: str) -> None: ...


FIRST, DRAFT, BEST = entrant("c0001"), entrant("c0003"), entrant("c0007")


def test_a_diagnosis_from_counters_is_kept_before_a_later_one_without() -> None:
    tried = entrant("c0007").tried

    def told(*sources: str) -> str | None:
        for rung, source in enumerate(sources, start=2):
            found = Diagnosis(f"on rung {rung}", (), SHAPE, 100.0, 50.0, source)
            outcome = RungOutcome(verified(4, Proof.GPU, ""), 1.0, 1.0, diagnosis=found)
            tried.results[rung] = RungCompleted("c0007", rung, outcome, Decision.PROMOTE, "", 1.0, False)
        return Entrant(tried, "").kept("champion").diagnosis

    assert told() is None
    assert told("compiled", "compiled") == "on rung 3 (compiled)"
    assert told("compiled", "counters", "compiled") == "on rung 3 (counters)"


def test_the_champion_takes_turns_with_the_first_kernel_the_draft_and_every_baseline() -> None:
    device = TimedDevice()
    baselines = (Baseline("eager", None), Baseline("liger", None, "liger: ImportError: liger_kernel is not installed"))
    held, kernels = hold(device, Contestants((BEST, DRAFT, FIRST), FIRST, DRAFT), baselines, TERMS, Marks(say=silent))
    assert (held.champion, held.us, held.end_to_end_us) == ("c0007", 100.0, 120.0)
    assert [(a.name, a.ratio, a.us) for a in held.against if a.ratio] == [
        ("draft", 2.0, 202.0), ("first", 2.0, 202.0), ("eager", 2.0, 202.0),
    ]  # fmt: skip
    assert next(a for a in held.against if a.name == "liger").error == "liger_kernel is not installed"
    assert [(k.role, k.candidate) for k in kernels] == [("champion", "c0007"), ("first", "c0001"), ("draft", "c0003")]
    assert device.asked[-1].rung.process_pairs == 3
    assert device.asked[0].seed != TERMS.seed
    assert held.readings[0].middle == 1940.0


def test_a_champion_that_is_the_draft_is_not_compared_with_itself() -> None:
    device = TimedDevice()
    held, _ = hold(device, Contestants((DRAFT, FIRST), FIRST, DRAFT), (), TERMS, Marks(say=silent))
    assert held.beside("draft") is None
    assert held.beside("first") is not None


def test_a_candidate_that_fails_the_last_gate_gives_way_to_the_next_and_is_named() -> None:
    device = TimedDevice(wrong=(BEST.source,))
    held, kernels = hold(device, Contestants((BEST, DRAFT, FIRST), FIRST, DRAFT), (), TERMS, Marks(say=silent))
    assert held.champion == kernels[0].candidate == "c0003"
    assert held.refused == (("c0007", "wrong_values: off by 0.3"),)


def test_where_nobody_passes_the_case_is_given_up_with_the_reasons() -> None:
    device = TimedDevice(wrong=(BEST.source, FIRST.source))
    with pytest.raises(EngineError, match=r"c0007 wrong_values: off by 0\.3; c0001 wrong_values"):
        hold(device, Contestants((BEST, FIRST), FIRST, None), (), TERMS, Marks(say=silent))


def test_a_baseline_that_breaks_is_left_out_and_said_so() -> None:
    device = TimedDevice(breaks="max-autotune")
    baselines = (Baseline("eager", None), Baseline("max-autotune", None))
    held, _ = hold(device, Contestants((BEST, FIRST), FIRST, None), baselines, TERMS, Marks(say=silent))
    assert held.champion == "c0007"
    assert [a.error for a in held.against if a.name == "max-autotune"] == ["died of signal 9"]


def test_a_failure_of_ours_ends_the_contest_and_is_not_laid_on_the_next_candidate() -> None:
    device = TimedDevice(breaks="referee")
    with pytest.raises(EngineError, match="harness_failed: referee: died of signal 9"):
        hold(device, Contestants((BEST, DRAFT, FIRST), FIRST, None), (), TERMS, Marks(say=silent))
    assert {request.source for request in device.asked} == {BEST.source}


def test_every_pairs_medians_are_kept_for_the_cases_shape() -> None:
    raw = [{"eager": {SHAPE: [{"candidate": [1.0, 3.0], "other": [4.0, 4.5]}], "other": []}}, {"eager": {}}]
    kept = pairs(raw, SHAPE)
    assert [(p.name, p.process, p.us) for p in kept] == [("eager", 0, ((2.0, 4.25),)), ("eager", 1, ())]
    assert readings([]) == ()


def test_an_a100_allows_no_spills_and_163_kib_of_shared_memory() -> None:
    assert too_much(RESOURCES) is None
    assert too_much(replace(RESOURCES, shared_bytes=163 * 1024)) is None
    assert "163.0" in (too_much(replace(RESOURCES, shared_bytes=163 * 1024 + 16)) or "")
    assert "spills 8 bytes" in (too_much(replace(RESOURCES, spill_bytes=8)) or "")
    refused = CompileReport(rejected(Reason.OUT_OF_RESOURCES, 0, Proof.NONE, "shared memory"), (), 0.1)
    assert fault_of(refused) == "out_of_resources: shared memory"
    assert fault_of(CompileReport(verified(0, Proof.NONE), (RESOURCES,), 0.1)) is None


def test_a_record_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    of = case()
    made = record(of, contest(against("eager", 1.3)))
    write_record(tmp_path / f"{of.name}.json", made)
    assert read_records(tmp_path) == {of.name: made}
    assert [p.name for p in tmp_path.iterdir()] == [f"{of.name}.json"]
