"""Recording a pool: in slices that resume, failures kept, and what comes out plays back."""

import itertools
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.record_pools import header_of, main
from benchmarks.recording.climber import CLEARLY_BEHIND, FEWEST_PAIRS, PROFILE_ONE_IN, confirming_rung
from benchmarks.recording.questions import heads, is_complete, next_question
from benchmarks.recording.recorder import Recorder
from benchmarks.recording.recording import Asked, Recording
from benchmarks.recording.speeds import speed_of
from kbtui.domain.evaluation import Evaluated, EvaluationRequest
from kbtui.domain.pool import PoolCandidate, pool_of_rows, pool_rows
from kbtui.domain.rung import COMPILE, CONFIRM, DEFAULT_LADDER, MEASURE, PROFILE, SCREEN
from kbtui.evaluation.devices.replay import ReplayDevice
from kbtui.generation.replay import recorded_generators
from kbtui.pool_file import read_pool, write_pool
from tests.fakes.search import PROBLEM, Numbered, PlantedDevice

NAMES = ("playbook",)


def recorded(
    path: Path, n: int, calls: int | None = None, device: PlantedDevice | None = None, at_once: int = 1
) -> Recording:
    """One call that records up to ``n`` candidates, cut short after so many looks at the clock."""
    recording, device = Recording.read(path), device or PlantedDevice()
    report = device.open(PROBLEM)
    if recording.header is None:
        recording.append("header", header_of(device, PROBLEM, "toy", report, 1.0))
    looks = itertools.count()
    generators = {"playbook": Numbered("playbook")}
    recorder = Recorder(device, PROBLEM, generators, recording, report, lambda _line: None, at_once)
    recorder.run(n, lambda: 1e9 if calls is None or next(looks) < calls else -1.0)
    return recording


def told(recording: Recording) -> list[tuple[str, str | None, tuple[int, ...]]]:
    return [(c.source, c.parent, tuple(r.rung for r in c.rungs)) for c in recording.candidates]


def test_a_recording_cut_short_again_and_again_ends_as_one_that_was_not(tmp_path: Path) -> None:
    whole = recorded(tmp_path / "whole.jsonl", 10)
    for _ in range(10):
        sliced = recorded(tmp_path / "sliced.jsonl", 10, calls=1)
    assert told(sliced) == told(whole)
    assert [a.answers for a in sliced.asked] == [a.answers for a in whole.asked]


@pytest.mark.parametrize("ending", ["", "}"], ids=["anywhere", "after a brace within"])
def test_a_call_that_was_killed_in_the_middle_of_a_line_loses_that_line_only(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "toy.jsonl"
    recorded(path, 4)
    lines = path.read_text().splitlines()
    kept = lines[-1].index(ending, 100) + 1 if ending else 100
    assert kept < len(lines[-1])
    path.write_text("\n".join([*lines[:-1], lines[-1][:kept]]))
    assert told(recorded(path, 6)) == told(recorded(tmp_path / "whole.jsonl", 6))


def test_everybody_climbs_to_the_top_but_who_is_found_wrong(tmp_path: Path) -> None:
    candidates = recorded(tmp_path / "toy.jsonl", 12).candidates
    wrong = [c for c in candidates if not c.highest.outcome.verdict.ok]
    assert wrong
    assert all(c.highest.rung == SCREEN for c in wrong)
    for number, candidate in enumerate(candidates):
        if candidate not in wrong:
            profiled = (PROFILE,) if number % PROFILE_ONE_IN == 0 else ()
            assert tuple(r.rung for r in candidate.rungs) == (COMPILE, SCREEN, MEASURE, *profiled, CONFIRM)


def test_the_recording_ends_where_nobody_has_anything_left_to_say(tmp_path: Path) -> None:
    recording = recorded(tmp_path / "toy.jsonl", 100)
    assert len(recording.candidates) < 100
    assert next_question(recording, NAMES) is None
    assert len({c.source_sha for c in recording.candidates}) == len(recording.candidates)


def test_the_pool_plays_back(tmp_path: Path) -> None:
    pool = recorded(tmp_path / "toy.jsonl", 12).pool()
    assert pool_of_rows(pool_rows(pool)) == pool
    write_pool(tmp_path / "toy.jsonl.gz", pool)
    device = ReplayDevice(tmp_path / "toy.jsonl.gz")
    assert device.pool.generators == NAMES
    assert recorded_generators(NAMES, device.pool, lambda _s: None)
    assert dict(pool.header.ask_wall_s).keys() == {"playbook"}


@pytest.mark.parametrize("old", [None, b"of fewer candidates"], ids=["none", "an older one"])
def test_a_call_that_was_killed_before_it_wrote_the_pool_leaves_it_to_the_next(
    tmp_path: Path, old: bytes | None
) -> None:
    recording, out = recorded(tmp_path / "toy.jsonl", 6), tmp_path / "pools" / "toy-a100-sxm4-80gb-full.jsonl.gz"
    out.parent.mkdir()
    if old is not None:
        out.write_bytes(old)
    words = ["--samples", "toy", "--candidates", "6", "--work", str(tmp_path), "--out", str(out.parent)]
    assert main([*words, "--device", "cuda:99"]) == 0, "no device is needed for it"
    assert [f.name for f in out.parent.iterdir()] == [out.name]
    assert read_pool(out) == recording.pool()


def test_it_is_complete_with_all_candidates_or_where_nobody_has_anything_left_to_say(tmp_path: Path) -> None:
    recording = recorded(tmp_path / "toy.jsonl", 6)
    assert is_complete(recording, 6, NAMES)
    assert not is_complete(recording, 7, NAMES)
    assert is_complete(recorded(tmp_path / "toy.jsonl", 100), 100, NAMES)
    silent = Recording(tmp_path / "none.jsonl", asked=[Asked("playbook", None, True, 0, 0.0)])
    assert not is_complete(silent, 6, NAMES), "its first kernel was not evaluated"


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    return recorded(tmp_path / "toy.jsonl", 6)


def test_the_fastest_of_each_structure_is_asked_about_and_who_was_asked_least_comes_first(
    recording: Recording,
) -> None:
    best = heads(recording.candidates)
    assert [s for _, s in best] == sorted((s for _, s in best), reverse=True)
    assert len({c.structure for c, _ in best}) == len(best)
    recording.asked = [Asked("playbook", None, True, 2, 0.0)]
    asked = [next_question(recording, NAMES)]
    for _ in range(len(best)):
        last = asked[-1]
        assert last is not None
        assert last.parent is not None
        recording.asked.append(Asked("playbook", last.parent.source_sha, last.hinted, 1, 0.0))
        asked.append(next_question(recording, NAMES))
    parents = [q.parent.source_sha for q in asked[:-1] if q and q.parent]
    assert parents == [c.source_sha for c, _ in best]


def test_the_first_kernels_speed_is_one_and_of_who_was_not_confirmed_nothing_is_known(recording: Recording) -> None:
    first: PoolCandidate = recording.candidates[0]
    assert speed_of(first) == 1.0
    wrong = [c for c in recording.candidates if not c.highest.outcome.verdict.ok]
    assert all(speed_of(c) is None for c in wrong)


def test_who_is_clearly_behind_is_confirmed_by_fewer_pairs_and_by_as_many_processes() -> None:
    near, far = confirming_rung(1.0, 0.99 * CLEARLY_BEHIND), confirming_rung(1.0, 1.01 * CLEARLY_BEHIND)
    assert near == confirming_rung(None, 3.0) == replace(DEFAULT_LADDER[CONFIRM], more_process_pairs=0)
    assert far.max_pairs == FEWEST_PAIRS < near.max_pairs
    assert (far.process_pairs, far.gate_stage) == (near.process_pairs, near.gate_stage)


def test_every_candidate_is_asked_the_gates_questions_of_one_seed(tmp_path: Path) -> None:
    asked: list[int] = []

    class Watched(PlantedDevice):
        def evaluate(self, request: EvaluationRequest, on_sample: object) -> Evaluated:
            asked.append(request.seed)
            return super().evaluate(request, on_sample)

    recorded(tmp_path / "toy.jsonl", 6, device=Watched())
    assert len(asked) > 6
    assert len(set(asked)) == 1


def test_one_in_sixteen_is_confirmed_against_the_best_so_far_too(tmp_path: Path) -> None:
    met: list[tuple[str, str | None]] = []

    class Watched(PlantedDevice):
        def evaluate(self, request: EvaluationRequest, on_sample: object) -> Evaluated:
            if request.rung.index == CONFIRM:
                met.append((request.candidate, request.incumbent.source if request.incumbent else None))
            return super().evaluate(request, on_sample)

    done = recorded(tmp_path / "toy.jsonl", 8, device=Watched()).candidates
    assert [name for name, rival in met if rival] == ["c0005"]
    best = max(done[:4], key=lambda c: speed_of(c) or 0.0)
    assert dict(met)["c0005"] == best.source


def test_answers_wait_while_others_are_evaluated(tmp_path: Path) -> None:
    compiling: list[str] = []
    ahead: list[str] = []

    class Compiling(PlantedDevice):
        def prefetch(self, source: str) -> None:
            compiling.append(source)

        def evaluate(self, request: EvaluationRequest, on_sample: object) -> Evaluated:
            if request.candidate == "c0001" and not ahead:
                ahead.extend(compiling)
            return super().evaluate(request, on_sample)

    sources = [c.source for c in recorded(tmp_path / "toy.jsonl", 3, device=Compiling()).candidates]
    assert sources == ahead


@pytest.mark.parametrize("cut", [None, 4], ids=["in one call", "in two"])
def test_side_by_side_everybody_is_evaluated_once_and_under_a_name_of_its_own(tmp_path: Path, cut: int | None) -> None:
    names: list[tuple[str, str]] = []
    inside, most = [0], [0]
    together = threading.Barrier(3)

    class Watched(PlantedDevice):
        def evaluate(self, request: EvaluationRequest, on_sample: object) -> Evaluated:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            if request.candidate in ("c0001", "c0002", "c0003") and request.rung.index == COMPILE:
                together.wait(20.0)
            names.append((request.candidate, request.source))
            found = super().evaluate(request, on_sample)
            inside[0] -= 1
            return replace(found, outcome=replace(found.outcome, wall_s=1e3))

    if cut is not None:
        recorded(tmp_path / "toy.jsonl", cut, device=Watched(), at_once=3)
    candidates = recorded(tmp_path / "toy.jsonl", 9, device=Watched(), at_once=3).candidates
    assert most == [3]
    assert max(r.outcome.wall_s for c in candidates for r in c.rungs if r.rung > COMPILE) < 1e3, "waiting for others"
    assert len({c.source_sha for c in candidates}) == len(candidates) == 9
    assert len({name for name, _ in names}) == len({source for _, source in names}) == len(set(names)) == 9
