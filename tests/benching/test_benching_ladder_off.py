"""The same search with the ladder and without it: what is asked of the device, and what is said of the two."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.ladder_off import FullAtOnce, Searched, chained, found, main
from kbtui.domain.evaluation import EvaluationRequest, Opponent
from kbtui.domain.measurement import Comparison, Outcome
from kbtui.domain.rung import COMPILE, CONFIRM, DEFAULT_LADDER, MEASURE, SCREEN
from tests.fakes.search import PlantedDevice

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
    assert found(searched, searched.full, 1.96).within_wall_s == 20.0
    assert found(searched, searched.full | {"a": 1.97}, 1.96).within_wall_s == 5.0
    missed = found(replace(searched, full={}), {}, 1.96)
    assert (missed.within_wall_s, missed.within_gpu_s, missed.score) == (None, None, 0.0)


def test_on_a_recorded_pool_the_ladder_finds_the_same_in_a_part_of_the_time(tmp_path: Path) -> None:
    out = tmp_path / "off.json"
    words = ["--device", f"replay:{POOL}", "--case", "softmax", "--seconds", "170", "--off-seconds", "600"]
    assert main([*words, "--out", str(out)]) == 0
    made = json.loads(out.read_text())
    on, off = made["on"], made["off"]
    assert made["share_of_time"] == pytest.approx(on["within_wall_s"] / off["within_wall_s"])
    assert made["share_of_time"] < 0.5
    assert off["score"] >= on["score"] / 1.02
    assert off["ended"].startswith("stopped")
    assert off["n_candidates"] < on["n_candidates"]
    assert made["sample"] == "softmax-4096x16384-fp32"


def test_a_search_that_confirms_nothing_is_said_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["--device", f"replay:{POOL}", "--case", "softmax", "--seconds", "6", "--out", str(tmp_path / "off.json")]
    assert main(words) == 4
    assert "confirmed nothing; give it more time: --seconds" in capfd.readouterr().err
