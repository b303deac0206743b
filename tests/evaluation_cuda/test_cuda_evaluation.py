"""The device's logic from rung to rung, with the CPU standing in for the GPU: everything but CUDA itself is real."""

import contextlib
import importlib.util
import json
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from host_device import evaluate, host_opened, rung
from softmax_problem import CHEATS, HONEST, kernel, make_problem

from kbtui.domain.measurement import Comparison, Outcome
from kbtui.domain.rung import Rung
from kbtui.domain.verdict import Proof, Reason, Verdict, VerdictKind, verified
from kbtui.evaluation.devices import cuda_evaluation, cuda_match, cuda_sides
from kbtui.evaluation.devices.cuda import _family, time_baseline
from kbtui.evaluation.devices.cuda_gates import WholeGates
from kbtui.evaluation.devices.cuda_opened import OpenedProblem
from kbtui.evaluation.gate import runner
from kbtui.evaluation.gate.clients import RefereeClient
from kbtui.evaluation.gpu_lock import Turn
from kbtui.evaluation.nvml import parent_of
from kbtui.evaluation.process import Worker, Zygote

PLAIN = HONEST["plain"]
SLOW = kernel("for _ in range(3):\n    out = launch(x, torch.empty_like(x))\nreturn out")
FEW = {"max_pairs": 3}


@pytest.fixture(scope="module")
def opened(compiling_zygote: Zygote, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenedProblem]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(runner.AGE_S, Proof.GPU, (0.5, 1.0))
        patch.setattr(cuda_sides, "CANDIDATE_ROLE", "host_candidate")
        patch.setattr(cuda_sides, "BASELINE_ROLE", "host_baseline")
        with host_opened(make_problem(rows=2), tmp_path_factory.mktemp("device"), compiling_zygote) as ready:
            yield ready


def test_opening_finds_the_family_and_times_pytorch(opened: OpenedProblem) -> None:
    assert _family(opened) == "row_softmax"
    eager = time_baseline(opened, "eager")
    assert eager.measurement is not None, eager.error
    assert eager.measurement.timings[0].device_us > 0


@pytest.mark.skipif(importlib.util.find_spec("liger_kernel") is not None, reason="Liger-Kernel is installed")
def test_a_library_that_is_not_installed_is_said_so(opened: OpenedProblem) -> None:
    liger = time_baseline(opened, "liger")
    assert liger.measurement is None
    assert "liger_kernel is not installed" in (liger.error or "")


def test_a_confirmation_takes_turns_with_every_baseline(opened: OpenedProblem) -> None:
    against = replace(opened, baselines=("eager", "copy", "read"))
    found, _ = evaluate(against, PLAIN, rung(4, max_pairs=1, process_pairs=2), first=SLOW, passed_stage=4)
    assert found.outcome.measurement is not None, found.outcome.verdict
    assert [c.against for c in found.outcome.measurement.comparisons] == ["first", "eager", "copy", "read"]
    assert {c.n_processes for c in found.outcome.measurement.comparisons} == {2}


def test_a_confirmation_meets_those_baselines_that_it_is_asked_to(opened: OpenedProblem) -> None:
    against, few = replace(opened, baselines=("eager", "copy")), rung(4, max_pairs=1, process_pairs=2)
    for asked, met in (((), []), (("copy", "read"), ["copy"])):
        found, _ = evaluate(against, PLAIN, few, first=SLOW, passed_stage=4, baselines=asked)
        assert found.outcome.measurement is not None, found.outcome.verdict
        assert [c.against for c in found.outcome.measurement.comparisons] == ["first", *met]


def test_while_one_grows_old_another_has_the_gpu(opened: OpenedProblem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(runner.AGE_S, Proof.GPU, (9.0, 9.1))
    waits = threading.Event()
    aside = Turn.aside

    @contextlib.contextmanager
    def told(turn: Turn) -> Iterator[None]:
        with aside(turn):
            waits.set()
            yield

    monkeypatch.setattr(Turn, "aside", told)
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(
            evaluate, opened, PLAIN, rung(4, max_pairs=1, process_pairs=2), first=SLOW, passed_stage=2
        )
        assert waits.wait(60.0)
        other, _ = evaluate(opened, SLOW, rung(2, **FEW), incumbent=PLAIN, passed_stage=1)
        assert not first.done()
        old, _ = first.result()
    assert other.outcome.verdict.ok, other.outcome.verdict
    assert old.outcome.verdict.ok, old.outcome.verdict
    assert old.outcome.wall_s > 9.0 > old.outcome.gpu_s


def test_rung_zero_compiles_and_bounds(opened: OpenedProblem) -> None:
    found, _ = evaluate(opened, PLAIN, rung(0), passed_stage=-1)
    assert found.outcome.verdict.ok, found.outcome.verdict
    assert found.outcome.resources[0].kernel == "softmax_row"
    assert found.outcome.bound_us is not None
    assert found.outcome.gpu_s == 0.0


def test_rung_zero_refuses_what_the_policy_refuses(opened: OpenedProblem) -> None:
    found, _ = evaluate(opened, "import socket\n" + PLAIN, rung(0), passed_stage=-1)
    assert found.outcome.verdict.reason is Reason.POLICY_IMPORT


def test_the_first_kernel_is_timed_alone(opened: OpenedProblem) -> None:
    found, live = evaluate(opened, PLAIN, rung(1))
    assert found.outcome.verdict.ok, found.outcome.verdict
    assert found.outcome.measurement is not None
    assert found.outcome.measurement.comparisons == ()
    assert found.outcome.measurement.timings[0].shape == "2x1024"
    assert live == []


def test_a_slower_candidate_is_found_slower_and_samples_come_live(opened: OpenedProblem) -> None:
    found, live = evaluate(opened, SLOW, rung(1), incumbent=PLAIN)
    assert found.outcome.verdict.ok, found.outcome.verdict
    against = found.outcome.measurement.against("c0001") if found.outcome.measurement else None
    assert against is not None
    assert against.outcome in (Outcome.SLOWER, Outcome.UNCLEAR)
    assert against.ratio < 0.9
    assert live[0].against == "c0001"
    assert live[0].max_pairs == rung(1).max_pairs
    samples = json.loads(found.attachments[0].content)
    assert samples["processes"][0]["c0001"]["2x1024"]


def test_the_measuring_rung_adds_end_to_end_time_and_a_diagnosis(opened: OpenedProblem) -> None:
    found, _ = evaluate(opened, PLAIN, rung(2, **FEW), incumbent=SLOW, passed_stage=1)
    assert found.outcome.measurement is not None, found.outcome.verdict
    assert found.outcome.measurement.timings[0].end_to_end_us is not None
    assert found.outcome.diagnosis is not None
    assert found.outcome.measurement.comparisons[0].ratio > 1.1
    assert found.outcome.gpu_s > 0


def test_confirmation_uses_fresh_processes_against_pytorch_the_first_and_the_champion(opened: OpenedProblem) -> None:
    found, _ = evaluate(
        opened, PLAIN, rung(4, max_pairs=2, process_pairs=3), incumbent=SLOW, first=SLOW + "\n# 1", passed_stage=2
    )
    assert found.outcome.measurement is not None, found.outcome.verdict
    by_name = {c.against: c for c in found.outcome.measurement.comparisons}
    assert set(by_name) == {"c0001", "first", "eager"}
    assert {c.n_processes for c in by_name.values()} == {3}
    assert found.outcome.verdict.stage == 4


@pytest.mark.parametrize("n_further", [0, 2])
def test_further_processes_meet_whom_the_rung_decides_against_and_no_baseline(
    opened: OpenedProblem, n_further: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def worth_it(rung: Rung, met: list[Comparison]) -> int:
        asked.append([c.against for c in met])
        return n_further

    monkeypatch.setattr(cuda_evaluation, "n_further", worth_it)
    long = rung(4, max_pairs=1, process_pairs=2, more_process_pairs=2)
    found, live = evaluate(opened, PLAIN, long, incumbent=SLOW, first=SLOW + "\n# 1", passed_stage=4)
    assert found.outcome.measurement is not None, found.outcome.verdict
    assert asked == [["c0001", "first"]]
    processes = {c.against: c.n_processes for c in found.outcome.measurement.comparisons}
    assert processes == {"c0001": 2 + n_further, "first": 2 + n_further, "eager": 2}
    assert len(json.loads(found.attachments[0].content)["processes"]) == 2 + n_further
    assert {s.against for s in live[-3:]} == ({"c0001", "first"} if n_further else {"c0001", "first", "eager"})
    assert found.outcome.measurement.timings[0].end_to_end_us is not None


def test_who_is_behind_or_has_nobody_to_beat_gets_no_further_processes(opened: OpenedProblem) -> None:
    long = rung(4, max_pairs=1, process_pairs=2, more_process_pairs=2)
    alone, _ = evaluate(opened, PLAIN, long, passed_stage=4)
    behind, _ = evaluate(opened, SLOW, long, incumbent=PLAIN, passed_stage=4)
    for found in (alone, behind):
        assert found.outcome.measurement is not None, found.outcome.verdict
        assert {c.n_processes for c in found.outcome.measurement.comparisons} == {2}


def test_a_profiling_rung_without_counters_says_why(opened: OpenedProblem) -> None:
    found, _ = evaluate(opened, PLAIN, rung(3, max_pairs=1, process_pairs=2), incumbent=SLOW, passed_stage=2)
    assert found.outcome.profile is not None, found.outcome.verdict
    assert found.outcome.profile.not_profiled
    assert found.outcome.diagnosis is not None


@pytest.mark.parametrize("name", ["zeros", "in place", "cached by address", "raises", "tail never written"])
def test_a_wrong_candidate_is_rejected_before_it_is_timed(opened: OpenedProblem, name: str) -> None:
    source, reason = CHEATS[name]
    found, live = evaluate(opened, source, rung(1), incumbent=PLAIN)
    assert (found.outcome.verdict.kind, found.outcome.verdict.reason) == (VerdictKind.REJECTED, reason)
    assert found.outcome.measurement is None
    assert live == []


def test_a_candidate_that_computes_only_while_it_is_checked_is_caught_while_timed(opened: OpenedProblem) -> None:
    """Only what is timed gets inputs in turns."""
    lazy = kernel(
        "places.add(x.data_ptr())\nonce = len(places) == 1\n"
        "return launch(x if once else torch.ones_like(x), torch.empty_like(x))",
        "places = set()",
    )
    found, _ = evaluate(opened, lazy, rung(1), incumbent=PLAIN)
    assert found.outcome.verdict.reason is Reason.WRONG_WHEN_TIMED, found.outcome.verdict


BY_THE_CLOCK = kernel(
    "began = born.setdefault('at', time.monotonic())\n"
    "if x.shape not in kept or time.monotonic() - began < HONEST_S:\n"
    "    kept[x.shape] = launch(x, torch.empty_like(x))\n"
    "return kept[x.shape]",
    "import time\nborn, kept = {}, {}",
)


@pytest.mark.parametrize("changes", [{"max_pairs": 1, "process_pairs": 2}, {"max_pairs": 0, "process_pairs": 0}])
def test_who_keeps_time_is_caught_at_the_confirmation_and_by_the_whole_gate(
    opened: OpenedProblem, changes: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether others are timed meanwhile or not, the process that was gated is asked again when it is old."""
    monkeypatch.setattr(OpenedProblem, "static", lambda *_: verified(0, Proof.NONE))
    monkeypatch.setitem(runner.AGE_S, Proof.GPU, (2.5, 2.6))
    source = BY_THE_CLOCK.replace("HONEST_S", "2.4")
    found, _ = evaluate(opened, source, rung(4, **changes), first=SLOW, passed_stage=2)
    caught = (Reason.WRONG_VALUES, Reason.WRONG_WHEN_TIMED, Reason.FORBIDDEN_OP)  # what it kept, nobody saw it make
    assert found.outcome.verdict.reason in caught, found.outcome.verdict


def test_whose_process_is_gone_when_it_is_to_be_asked_again_has_not_answered(
    opened: OpenedProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have ended itself, or the machine was out of memory: neither verifies it."""

    def ended(worker: Worker, timeout_s: float) -> bool:
        worker.kill()
        return True

    monkeypatch.setattr(Worker, "stands_still", ended)
    found, _ = evaluate(opened, PLAIN, rung(4, max_pairs=1, process_pairs=2), first=SLOW, passed_stage=2)
    assert (found.outcome.verdict.kind, found.outcome.measurement) == (VerdictKind.UNVERIFIED, None)


def test_who_waited_while_the_referee_was_started_anew_is_gated_anew(
    opened: OpenedProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its inputs lay in the memory of the one that is gone: what it answers then says nothing of it."""
    referees: list[tuple[str, object]] = []

    def still(worker: Worker, timeout_s: float) -> bool:
        if len(referees) == 1:
            assert opened.sides._referee is not None
            opened.sides._referee.kill()
        return True

    def noted(name: str, run: Callable[..., Verdict]) -> Callable[..., Verdict]:
        def noting(referee: RefereeClient, *rest: object, **how: object) -> Verdict:
            referees.append((name, referee.worker))
            return run(referee, *rest, **how)

        return noting

    monkeypatch.setattr(Worker, "stands_still", still)
    monkeypatch.setattr(cuda_evaluation, "run_stage", noted("gated", runner.run_stage))
    monkeypatch.setattr(cuda_evaluation, "run_aged", noted("aged", runner.run_aged))
    found, _ = evaluate(opened, PLAIN, rung(4, max_pairs=1, process_pairs=2), first=SLOW, passed_stage=2)
    assert found.outcome.verdict.ok, found.outcome.verdict
    (_, first), *others = referees
    assert [name for name, _ in others] == ["gated", "aged"]
    assert others[0][1] is others[1][1] is not first


def test_whoever_stops_to_compute_while_timed_is_caught_by_the_last_block(opened: OpenedProblem) -> None:
    """Honest for as many calls as the gate and the first blocks make, whatever the odds of a look in between."""
    lazy = kernel(
        "calls.append(1)\nreturn launch(x if len(calls) < 16 else torch.ones_like(x), torch.empty_like(x))",
        "calls = []",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda_match, "LATE_ODDS", 0.0)
        found, _ = evaluate(opened, lazy, rung(2, **FEW), incumbent=PLAIN, passed_stage=2)
    assert found.outcome.verdict.reason is Reason.WRONG_WHEN_TIMED, found.outcome.verdict


def test_a_hang_and_a_crash_are_rejected_and_the_next_candidate_is_well(opened: OpenedProblem) -> None:
    with pytest.MonkeyPatch.context() as impatient:
        impatient.setattr(opened.compiler, "_timeout_s", 2.0)
        hang, _ = evaluate(opened, kernel("while True:\n    pass"), rung(1), passed_stage=0)
    crash, _ = evaluate(opened, kernel("return x[10**9]"), rung(1))
    assert hang.outcome.verdict.reason in (Reason.TIMED_OUT, Reason.COMPILE_ERROR)
    assert crash.outcome.verdict.reason is Reason.RAISED
    assert evaluate(opened, PLAIN, rung(1))[0].outcome.verdict.ok


def test_a_broken_opponent_says_nothing_of_the_candidate(opened: OpenedProblem) -> None:
    found, _ = evaluate(opened, PLAIN, rung(1), incumbent=kernel("raise ValueError('not I')"))
    assert (found.outcome.verdict.kind, found.outcome.verdict.reason) == (VerdictKind.UNVERIFIED, "harness_failed")


def test_no_process_is_left_after_an_evaluation_but_referee_incumbents_and_zygote(opened: OpenedProblem) -> None:
    evaluate(opened, PLAIN, rung(2, max_pairs=1), incumbent=SLOW, passed_stage=1)
    with opened.zygote.quiet():  # waits for those that are being buried
        pass
    children = [p for p in os.listdir("/proc") if p.isdigit() and parent_of(int(p)) == opened.zygote.pid]
    assert len(children) <= 3


def test_many_grow_old_side_by_side_and_who_keeps_time_is_caught_then(
    opened: OpenedProblem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OpenedProblem, "static", lambda *_: verified(0, Proof.NONE))
    monkeypatch.setitem(runner.AGE_S, Proof.GPU, (2.5, 4.0))
    gates = WholeGates(opened)
    given = {"plain": PLAIN, "clock": BY_THE_CLOCK.replace("HONEST_S", "2.4"), "wrong": kernel("return x"), "b": SLOW}
    found = [gated for name, source in given.items() for gated in gates.put(name, source)]
    found += gates.finish()
    verdicts = {g.name: g for g in found}
    assert sorted(verdicts) == sorted(given)
    assert verdicts["wrong"].age_s is None, "it is not asked to wait"
    assert {name for name, g in verdicts.items() if g.verdict.ok} == {"plain", "b"}
    assert verdicts["plain"].verdict.stage == 4
    assert all((verdicts[name].age_s or 0.0) >= 2.5 for name in ("plain", "clock", "b"))
