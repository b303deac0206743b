"""The same search with the ladder and without it: what is asked of the device, and what is said of the two."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import ladder_off, ladder_searches
from benchmarks.full_at_once import FullAtOnce, chained
from benchmarks.ladder_off import found, main
from benchmarks.ladder_searches import Searched, judged
from kbtui.domain.candidate import source_sha
from kbtui.domain.evaluation import Evaluated, EvaluationRequest, Opponent, ProblemReport
from kbtui.domain.measurement import Comparison, Outcome
from kbtui.domain.problem import Problem
from kbtui.domain.rung import COMPILE, CONFIRM, DEFAULT_LADDER, MEASURE, SCREEN
from kbtui.engine.ports import SampleSink
from kbtui.errors import EngineError
from kbtui.evaluation.devices.replay import ReplayDevice
from kbtui.scheduler.state import RunState
from tests.fakes.search import PROBLEM, PlantedDevice

ROOT = Path(__file__).parents[2]
POOL = ROOT / "benchmarks/pools/softmax-h200-full.jsonl.gz"
FIRST = Opponent("c0001", "structure=0 tune=0")


def request(name: str, tune: int, rung: int, incumbent: Opponent | None = None) -> EvaluationRequest:
    return EvaluationRequest(name, f"structure=2 tune={tune}", DEFAULT_LADDER[rung], 0, 0, incumbent, FIRST)


def ignore(_: object) -> None: ...


def test_who_compiles_is_confirmed_at_once_and_the_rungs_above_cost_nothing() -> None:
    planted = PlantedDevice()
    device = FullAtOnce(planted)
    device.evaluate(request("c0002", 3, COMPILE), ignore)
    whole = device.evaluate(request("c0002", 3, SCREEN), ignore).outcome
    again = [device.evaluate(request("c0002", 3, rung), ignore).outcome for rung in (MEASURE, CONFIRM)]
    assert planted.evaluated == [("c0002", COMPILE), ("c0002", CONFIRM)]
    assert whole.gpu_s == CONFIRM
    assert [(o.gpu_s, o.wall_s, o.measurement) for o in again] == [(0.0, 0.0, whole.measurement)] * 2


def test_beside_an_incumbent_that_it_never_met_it_stands_by_what_both_are_over_the_first() -> None:
    device = FullAtOnce(PlantedDevice())
    for name, tune in (("c0002", 0), ("c0003", 4)):
        device.evaluate(request(name, tune, SCREEN), ignore)
    slow, fast = Opponent("c0002", "structure=2 tune=0"), Opponent("c0003", "structure=2 tune=4")
    for name, tune, rival, expected in (("c0003", 4, slow, Outcome.FASTER), ("c0002", 0, fast, Outcome.SLOWER)):
        measured = device.evaluate(request(name, tune, MEASURE, rival), ignore).outcome.measurement
        assert measured is not None
        assert measured.against("first") is not None
        told = measured.against(rival.id)
        assert told is not None
        assert told.outcome is expected
        assert told.ratio == pytest.approx({"c0003": 130.0 / 74.0, "c0002": 74.0 / 130.0}[name])


RATIOS, WIDTHS = st.floats(0.2, 5.0), st.floats(1.0, 1.2)


def over_first(ratio: float, width: float) -> Comparison:
    return Comparison("first", Outcome.UNCLEAR, ratio, ratio / width, ratio * width, 0.9, 12, 3)


@given(RATIOS, WIDTHS, RATIOS, WIDTHS)
def test_two_by_a_third_stand_as_their_ratios_do_and_less_surely(
    mine: float, my_width: float, theirs: float, their_width: float
) -> None:
    one, other = over_first(mine, my_width), over_first(theirs, their_width)
    told, back = chained("c0002", one, other), chained("c0003", other, one)
    assert told.against == "c0002"
    assert told.ratio == pytest.approx(mine / theirs)
    assert told.ratio * back.ratio == pytest.approx(1.0)
    assert told.low <= told.ratio * (1 + 1e-9)
    assert told.high / told.low >= max(my_width, their_width) ** 2 * (1 - 1e-9)
    opposite = {Outcome.FASTER: Outcome.SLOWER, Outcome.SLOWER: Outcome.FASTER}
    assert back.outcome is opposite.get(told.outcome, told.outcome)


def test_what_was_never_measured_at_full_fidelity_does_not_count_as_found() -> None:
    searched = Searched(points=[(5.0, 3.0, "a"), (9.0, 6.0, "b"), (20.0, 15.0, "c")], full={"b": 1.7, "c": 2.0})
    assert found(searched, {}, 1.96).within_wall_s == 20.0
    assert found(searched, {"a": 1.97}, 1.96).within_wall_s == 5.0
    missed = found(replace(searched, full={}), {}, 1.96)
    assert (missed.within_wall_s, missed.within_gpu_s, missed.score) == (None, None, 0.0)


def test_what_a_search_found_of_a_kernel_itself_goes_before_what_the_other_found() -> None:
    searched = Searched(points=[(5.0, 3.0, "a"), (9.0, 6.0, "b")], full={"a": 1.97, "b": 2.0})
    assert found(searched, {"a": 1.9}, 1.96).within_wall_s == 5.0


def searched_of(*sources: str, full: tuple[str, ...] = ()) -> Searched:
    """One that held these as its best, one after the other."""
    shas = {source: source_sha(source) for source in sources}
    state = RunState(seen={sha: f"c{number:04}" for number, sha in enumerate(shas.values(), 1)})
    points = [(float(at), float(at), sha) for at, sha in enumerate(shas.values())]
    return Searched(points, {shas[s]: 1.5 for s in full}, state=state, sources={sha: s for s, sha in shas.items()})


FIRST_KERNEL, WRONG = "structure=0 tune=0", "structure=1 tune=3"
FAST, FASTER = "structure=2 tune=3", "structure=2 tune=4"


def test_what_was_ever_held_and_is_not_known_is_measured_whole_over_the_first_kernel_the_most_recent_first() -> None:
    device = PlantedDevice()
    on = searched_of(FIRST_KERNEL, FAST, WRONG, FASTER, "structure=2 tune=5", full=("structure=2 tune=5",))
    off = searched_of(FIRST_KERNEL, FASTER)
    told = judged(device, PROBLEM, 0, {"on": on, "off": off}, 60.0)
    assert [(one.search, one.candidate) for one in told] == [("on", "c0004"), ("on", "c0003"), ("on", "c0002")]
    assert [one.score for one in told] == [pytest.approx(100.0 / 74.0), None, pytest.approx(100.0 / 88.0)]
    assert "relative L2 error" in told[1].fault
    assert {rung for _, rung in device.evaluated} == {CONFIRM}


def test_for_which_no_time_is_left_is_told_and_not_measured() -> None:
    device = PlantedDevice()
    (one,) = judged(device, PROBLEM, 0, {"on": searched_of(FIRST_KERNEL, FAST)}, 0.0)
    assert (one.candidate, one.score, one.fault) == ("c0002", None, "not measured: the time for it was over")
    assert device.evaluated == []


def run(out: Path, *words: str) -> int:
    return main(["--device", f"replay:{POOL}", "--case", "softmax-4096x16384", "--out", str(out), *words])


def test_on_a_recorded_pool_the_ladder_finds_the_same_in_a_part_of_the_time(tmp_path: Path) -> None:
    out = tmp_path / "off.json"
    assert run(out, "--seconds", "170", "--off-seconds", "600") == 0
    (made,) = json.loads(out.read_text())
    on, off = made["on"], made["off"]
    assert made["share_of_time"] == pytest.approx(on["within_wall_s"] / off["within_wall_s"])
    assert made["share_of_time"] < 0.5
    assert off["score"] >= on["score"] / 1.02
    assert off["ended"].startswith("stopped")
    assert off["n_candidates"] < on["n_candidates"]
    assert (made["sample"], made["seed"]) == ("softmax-4096x16384-fp32", 0)


def test_a_best_that_was_held_and_replaced_counts_from_when_it_was_held(tmp_path: Path) -> None:
    out = tmp_path / "off.json"
    assert run(out, "--seconds", "170", "--off-seconds", "20") == 0
    (made,) = json.loads(out.read_text())
    (near,) = (one for one in made["judged"] if one["candidate"] == made["on"]["within"])
    assert near["score"] >= made["on"]["score"] / 1.02
    assert made["on"]["within_wall_s"] < 0.5 * made["on"]["wall_s"]
    assert (made["off"]["within_wall_s"], made["share_of_time"]) == (None, None)


def test_each_search_has_a_workspace_of_its_own_in_which_the_problem_was_open_before_at_no_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspaces: list[Path] = []
    calls: list[list[str]] = []

    class Watched(ReplayDevice):
        def open(self, problem: Problem) -> ProblemReport:
            calls[-1].append("open")
            return ReplayDevice.open(self, problem)

        def evaluate(self, request: EvaluationRequest, on_sample: SampleSink) -> Evaluated:
            calls[-1].append(request.rung.name)
            return ReplayDevice.evaluate(self, request, on_sample)

    def watched(_key: str, workspace: Path) -> ReplayDevice:
        workspaces.append(workspace)
        calls.append([])
        return Watched(POOL)

    monkeypatch.setattr(ladder_searches, "open_device", watched)
    out = tmp_path / "off.json"
    assert run(out, "--seconds", "60", "--off-seconds", "30") == 0
    assert len(set(workspaces)) == 2
    assert [of[:5] for of in calls] == [["open", "profile", "confirm", "open", "compile"]] * 2
    once_s = ReplayDevice(POOL).pool.header.open_wall_s
    (made,) = json.loads(out.read_text())
    assert [made[name]["open_wall_s"] for name in ("on", "off")] == [pytest.approx(once_s, abs=0.01)] * 2


def test_what_is_there_is_not_done_again_and_nothing_is_begun_after_the_limit(tmp_path: Path) -> None:
    out = tmp_path / "off.json"
    few = ("--seconds", "60", "--off-seconds", "30")
    assert run(out, *few, "--seed", "0,1") == 0
    before = out.read_text()
    assert run(out, *few, "--seed", "1,0", "--limit", "0") == 0
    assert run(out, *few, "--seed", "0,2", "--limit", "0") == 1
    assert out.read_text() == before
    assert run(out, *few, "--seed", "2") == 0
    assert [one["seed"] for one in json.loads(out.read_text())] == [0, 1, 2]


def test_a_search_that_confirms_nothing_is_said_so_and_the_others_go_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "off.json"
    assert run(out, "--seconds", "6", "--seed", "0,1") == 4
    assert capfd.readouterr().err.count("confirmed nothing; give it more time: --seconds") == 2
    assert not out.exists()


def test_a_problem_with_all_its_shapes_is_searched_as_the_recorded_pools_are(tmp_path: Path) -> None:
    out = tmp_path / "off.json"
    words = ["--device", f"replay:{POOL}", "--out", str(out), "--seconds", "170", "--off-seconds", "600"]
    assert main(words) == 0
    assert main([*words, "--problem", "softmax"]) == 0
    (made,) = json.loads(out.read_text())
    assert made["sample"] == "softmax"
    assert made["shapes"] == ["4096x16384", "16x16384", "4096x65536"]
    assert made["share_of_time"] < 0.5


def test_a_problem_that_is_not_there_is_told_before_anything_is_searched(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "off.json"
    assert main(["--device", f"replay:{POOL}", "--out", str(out), "--problem", "softmax,sofmax"]) == 2
    assert "sofmax" in capfd.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--problem", ","), "--problem names nothing"),
        (("--case", ""), "--case names nothing"),
        (("--out", "nowhere/off.json"), "cannot be written"),
        (("--out", "."), "cannot be written"),
        (("--out", "damaged.json"), "holds no results"),
        (("--out", "other.json"), "holds no results"),
    ],
)
def test_what_cannot_come_to_anything_is_refused_before_anything_is_searched(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, str],
    told: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("damaged.json").write_text('[{"sample": "sof')
    Path("other.json").write_text('[{"x": 1}]')
    assert main(["--device", f"replay:{POOL}", "--out", "off.json", *words]) == 2
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert told in lines[0]
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "damaged.json": '[{"sample": "sof', "other.json": '[{"x": 1}]',
    }  # fmt: skip


def test_what_another_call_wrote_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "off.json"
    theirs = {"sample": "softmax", "seed": 7, "device": {"key": "cuda:0"}}

    def searched(*_: object) -> dict[str, object]:
        out.write_text(json.dumps([theirs]))
        return {"sample": "softmax", "seed": 0, "device": {"key": f"replay:{POOL}"}, "took_s": 1.0,
                "share_of_time": None, "on": {}, "off": {}, "judged": []}  # fmt: skip

    monkeypatch.setattr(ladder_off, "result", searched)
    assert run(out) == 0
    assert [one["seed"] for one in json.loads(out.read_text())] == [7, 0]


def test_each_option_may_be_given_more_than_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def searched(_: object, subject: ladder_off.Subject, seed: int) -> dict[str, object]:
        asked.append(subject.name)
        raise EngineError("enough")

    monkeypatch.setattr(ladder_off, "result", searched)
    words = ["--problem", "softmax", "--problem", "mat_vec,softmax", "--case", "mat_vec-256", "--case", "rms_norm-16x"]
    assert main([*words, "--device", f"replay:{POOL}", "--out", str(tmp_path / "off.json")]) == 4
    assert asked == ["softmax", "mat_vec", "rms_norm-16x64x256x256-fp32", "mat_vec-256x131072-fp32"]


def test_a_first_kernel_that_is_wrong_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "softmax"
    shutil.copytree(ROOT / "sample_kernels/softmax", folder)
    (folder / "kernel.py").write_text("def kernel_function(x):\n    raise ValueError('never')\n")
    out = tmp_path / "off.json"
    assert main(["--device", "model:a100", "--problem", str(folder), "--out", str(out), "--seconds", "5"]) == 2
    assert "softmax's first kernel is rejected: " in capfd.readouterr().err
    assert not out.exists()
