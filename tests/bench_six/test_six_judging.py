"""What numbers amount to: targets, wins, bandwidth."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.six import judging
from benchmarks.six.judging import Bound, Standing, Target
from benchmarks.six.record import CHAMPION, FIRST, MODELLED, REPLAYED, kind_of
from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.measurement import Outcome
from tests.bench_six.six_records import H200, against, case, contest, record

LARGE, SMALL = case("softmax-4096x16384-fp32"), case("softmax-16x16384-fp32")
UNNOTED = case("sdp_attn-32x32x512x64-fp16")


def test_the_tolerance_is_wider_where_the_experts_kernel_took_under_20_us() -> None:
    assert judging.tolerance(LARGE) == 0.03
    assert judging.tolerance(SMALL) == 0.10
    assert judging.tolerance(UNNOTED) == 0.03
    assert judging.tolerance(replace(LARGE, expert_ms=0.020)) == 0.03


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [(1.30, "passed"), (1.29, "reached"), (1.262, "reached"), (1.25, "missed (-3.8 %)"), (None, "not measured")],
)
def test_a_target_is_passed_reached_within_the_tolerance_or_missed(ratio: float | None, expected: str) -> None:
    assert judging.target_words(LARGE, ratio) == expected
    assert judging.target(LARGE, ratio).value == expected.partition(" (")[0]


def test_a_win_is_faster_than_eager_and_than_every_compiled_mode() -> None:
    win = record(LARGE, contest(against("eager", 1.3), against("compile", 1.2), against("max-autotune", 1.1)))
    assert judging.standing(win) is Standing.WIN
    compiled = record(LARGE, contest(against("eager", 1.3), against("compile", 0.95)))
    assert judging.standing(compiled) is Standing.KEEP_COMPILED
    alone = record(LARGE, contest(against("eager", 1.3)))
    assert judging.standing(alone) is Standing.OVER_EAGER_ALONE
    eager = record(LARGE, contest(against("eager", 0.8), against("compile", 0.9)))
    assert judging.standing(eager) is Standing.KEEP_EAGER


def test_a_ratio_above_one_that_nobody_decided_about_is_no_win() -> None:
    unclear = record(LARGE, contest(against("eager", 1.02, outcome=Outcome.UNCLEAR)))
    assert judging.standing(unclear) is Standing.KEEP_EAGER


@given(st.floats(0.1, 1.0), st.sampled_from(Outcome), st.floats(0.1, 5.0))
def test_nothing_below_one_is_ever_called_a_win(ratio: float, outcome: Outcome, compiled: float) -> None:
    held = contest(against("eager", ratio, outcome=outcome), against("compile", compiled))
    assert judging.standing(record(LARGE, held)) in (Standing.KEEP_EAGER, Standing.KEEP_COMPILED)


@pytest.mark.parametrize("kind", [MODELLED, REPLAYED])
def test_what_was_not_measured_here_is_no_measurement(kind: str) -> None:
    other = record(LARGE, contest(against("eager", 2.0), against("copy", 2.5)), kind)
    assert judging.standing(other) is Standing.NOT_MEASURED
    assert judging.bandwidth(LARGE, other) is None


def test_a_replay_of_measured_times_is_told_from_a_measurement() -> None:
    assert kind_of(H200) == "measured"
    assert kind_of(replace(H200, key="replay:/pool.jsonl.gz")) == "replayed"
    assert kind_of(DATA_SHEETS["a100"]) == "modelled"


def test_all_speedups_over_eager_come_from_the_champions_own_turns() -> None:
    held = contest(against("eager", 1.5), against("first", 2.0), against("compile", 1.2), against("max-autotune", 1.25))
    assert judging.over_eager(held, CHAMPION) == 1.5
    assert judging.over_eager(held, FIRST) == pytest.approx(0.75)
    best = judging.best_compiled(held)
    assert best is not None
    assert (best.name, judging.over_eager(held, best.name)) == ("compile", pytest.approx(1.25))
    assert judging.over_eager(contest(against("first", 2.0)), CHAMPION) is None


def test_bandwidth_is_the_operations_bytes_beside_the_ceiling_of_the_same_turns() -> None:
    copying = against("copy", 2.5, us=100.0)  # 250 us for 1 GiB
    found = judging.bandwidth(LARGE, record(LARGE, contest(copying, us=133.0)))
    assert found is not None
    assert found.champion_gb_s == pytest.approx(536_870_912 / 133.0 / 1e3)
    assert found.ceiling_gb_s == pytest.approx((1 << 30) / 250.0 / 1e3)
    assert found.share == pytest.approx(0.94, abs=0.005)
    launch_us = H200.launch_us
    least_us = 536_870_912 / (1 << 30) * (250.0 - launch_us)
    assert found.running_share == pytest.approx(least_us / (133.0 - launch_us))
    reading = replace(LARGE, ceiling="read")
    assert judging.bandwidth(reading, record(LARGE, contest(copying))) is None


def test_bandwidth_is_asked_of_what_memory_bounds_alone() -> None:
    held = record(LARGE, contest(against("copy", 2.5), us=133.0))
    found, slow = judging.asked_bandwidth(LARGE, held), replace(held, contest=replace(held.contest, us=150.0))
    assert found is not None
    assert found.enough
    late = judging.asked_bandwidth(LARGE, slow)
    assert late is not None
    assert not late.enough
    assert judging.asked_bandwidth(LARGE, replace(held, flops=1e12)) is None
    gone = replace(held, contest=replace(held.contest, us=H200.launch_us))
    assert (judging.bandwidth(LARGE, gone) or found).running_share == math.inf


def test_what_bounds_a_case_is_memory_compute_or_the_launch() -> None:
    held = contest(against("eager", 1.0))
    assert judging.bound(LARGE, record(LARGE, held)) is Bound.MEMORY
    assert judging.bound(LARGE, replace(record(LARGE, held), flops=1e12)) is Bound.COMPUTE
    assert judging.bound(SMALL, replace(record(SMALL, held), bytes_moved=2e6, flops=1e6)) is Bound.LAUNCH


def test_target_of_nothing_is_blank() -> None:
    assert judging.target(LARGE, None) is Target.NOT_MEASURED
