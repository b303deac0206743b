"""Simulated comparisons: the noise is what was measured on an H200, made worse by drift, bursts and heavy tails."""

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.domain.measurement import Outcome
from kbtui.evaluation.measure.adjudicate import (
    FASTER_PAIRS,
    Evidence,
    compare,
    decide,
    estimate,
    process_sigma,
    process_variance,
)
from kbtui.evaluation.measure.loop import NEVER, log_ratio_of, time_pair
from kbtui.evaluation.measure.schedule import Turn, abba, calls_per_block, looks


class Machine:
    """A clock both sides share: drift over time, bursts, and per-call noise with a heavy tail."""

    def __init__(self, rng: random.Random, drift: float = 0.0, burst: float = 0.01) -> None:
        self.rng, self.drift, self.burst = rng, drift, burst
        self.n_calls = 0

    def call_us(self, base_us: float) -> float:
        self.n_calls += 1
        noise = 0.004 * self.rng.gauss(0, 1) / max(abs(self.rng.gauss(0, 1)), 0.2)
        bump = 0.3 * self.rng.random() if self.rng.random() < self.burst else 0.0
        return base_us * (1 + self.drift * self.n_calls) * (1 + noise + bump)


class Side:
    """One process, as an H200 showed them: of a small kernel a few are slow for as long as they live."""

    def __init__(self, machine: Machine, base_us: float, rng: random.Random, spread: bool = True) -> None:
        sigma_us = math.hypot(0.093, 0.001 * base_us) if spread else 0.0
        self.machine, self.us = machine, base_us + rng.gauss(0, sigma_us)
        if spread and base_us < 20 and rng.random() < 1 / 11:
            self.us *= 1 + rng.uniform(0.05, 0.08)

    def timed(self, n_calls: int, keep: int) -> list[float]:
        return [self.machine.call_us(self.us) for _ in range(n_calls)]


def one_comparison(
    rng: random.Random, base_us: float, speedup: float, n_processes: int, max_pairs: int, drift: float = 0.0
) -> Outcome:
    """As the device does it: look after some pairs, stop when it is clear, several processes at higher rungs."""
    machine = Machine(rng, drift)
    processes: list[tuple[tuple[float, ...], ...]] = []
    schedule = looks(max_pairs)
    outcome = Outcome.UNCLEAR
    for _ in range(n_processes):
        candidate, other = Side(machine, base_us / speedup, rng), Side(machine, base_us, rng)
        pairs: list[tuple[float, ...]] = []
        for n in schedule:
            while len(pairs) < n:
                pairs.append((time_pair(len(pairs), candidate, other, 8, rng).log_ratio,))
            evidence = Evidence(("s",), (base_us,), (*processes, tuple(pairs)))
            outcome = decide(evidence, len(schedule))
            if n_processes == 1 and outcome is not Outcome.UNCLEAR:
                return outcome
        processes.append(tuple(pairs))
    return decide(Evidence(("s",), (base_us,), tuple(processes)), 1)


def rate(outcome: Outcome, n: int, compare_once: Callable[[random.Random], Outcome]) -> float:
    return sum(compare_once(random.Random(i)) is outcome for i in range(n)) / n


@pytest.mark.parametrize("base_us", [7.8, 135.0])
def test_the_same_kernel_is_rarely_called_faster(base_us: float) -> None:
    false = rate(Outcome.FASTER, 1000, lambda rng: one_comparison(rng, base_us, 1.0, 1, 20))
    assert false <= 0.01


def test_the_same_kernel_is_rarely_called_faster_over_processes_under_drift() -> None:
    false = rate(Outcome.FASTER, 300, lambda rng: one_comparison(rng, 7.8, 1.0, 3, 8, drift=2e-5))
    assert false <= 0.01


def test_two_per_cent_on_a_hundred_microseconds_is_found_on_rung_two() -> None:
    assert rate(Outcome.FASTER, 200, lambda rng: one_comparison(rng, 100.0, 1.02, 1, 20)) >= 0.95


def test_one_per_cent_is_found_with_three_processes() -> None:
    assert rate(Outcome.FASTER, 100, lambda rng: one_comparison(rng, 100.0, 1.01, 3, 16)) >= 0.95


def test_a_clearly_slower_candidate_is_dropped_on_the_screen() -> None:
    assert rate(Outcome.SLOWER, 100, lambda rng: one_comparison(rng, 135.0, 0.95, 1, 6)) >= 0.95


def test_a_linear_drift_changes_no_decision_and_fools_a_sequential_measurement() -> None:
    n_calls = 4 * 8 * 20
    drift = 0.05 / n_calls
    for seed in range(200):
        calm = one_comparison(random.Random(seed), 135.0, 1.0, 1, 20)
        drifting = one_comparison(random.Random(seed), 135.0, 1.0, 1, 20, drift)
        assert calm is drifting
    machine = Machine(random.Random(0), drift, burst=0.0)
    side = Side(machine, 135.0, random.Random(0), spread=False)
    first, second = side.timed(n_calls // 2, NEVER), side.timed(n_calls // 2, NEVER)
    assert math.log(sum(second) / sum(first)) > 0.02


@given(st.floats(0.5, 2.0), st.floats(0.0, 0.05), st.integers(0, 5))
def test_abba_cancels_a_linear_drift(ratio: float, drift: float, pair: int) -> None:
    clock = iter(range(1000))

    class Drifting:
        def __init__(self, us: float) -> None:
            self.us = us

        def timed(self, n_calls: int, keep: int) -> list[float]:
            return [self.us * math.exp(drift * next(clock)) for _ in range(n_calls)]

    measured = time_pair(pair, Drifting(100.0), Drifting(100.0 * ratio), 3, random.Random(0))
    assert measured.log_ratio == pytest.approx(math.log(ratio), abs=1e-9)


TIMES = st.floats(1.0, 1e4)


@given(st.lists(st.tuples(TIMES, TIMES, TIMES, TIMES), min_size=1, max_size=24), st.floats(-0.02, 0.02))
def test_a_trend_from_call_to_call_leaves_the_ratio_of_any_times_as_it_is(
    calls: list[tuple[float, float, float, float]], trend: float
) -> None:
    blocks = [list(block) for block in zip(*calls, strict=True)]
    n = len(calls)
    drifted = [[us * math.exp(trend * (b * n + i)) for i, us in enumerate(block)] for b, block in enumerate(blocks)]
    assert log_ratio_of(drifted) == pytest.approx(log_ratio_of(blocks), abs=1e-9)
    assert log_ratio_of(blocks[::-1]) == pytest.approx(log_ratio_of([block[::-1] for block in blocks]), abs=1e-9)


def test_one_wild_call_a_block_moves_no_ratio() -> None:
    blocks = [[100.0] * 8, [104.0] * 8, [104.0] * 8, [100.0] * 8]
    for i, block in enumerate(blocks):
        block[i] *= 50
    assert log_ratio_of(blocks) == pytest.approx(math.log(1.04), abs=1e-9)


@given(st.lists(st.tuples(st.floats(-0.2, 0.2), st.floats(-0.2, 0.2)), min_size=3, max_size=20))
def test_swapping_the_sides_negates_the_estimate(pairs: list[tuple[float, float]]) -> None:
    def evidence(sign: int) -> Evidence:
        return Evidence(("a", "b"), (100.0, 100.0), (tuple((sign * x, sign * y) for x, y in pairs),))

    forward, backward = estimate(evidence(1)), estimate(evidence(-1))
    assert forward.log_ratio == pytest.approx(-backward.log_ratio)
    assert forward.half_width(0.025) == pytest.approx(backward.half_width(0.025))


def test_a_comparison_reports_ratios_per_shape_and_their_mean() -> None:
    pairs = tuple((math.log(1.1) + e, math.log(1.2) - e) for e in (0.001, -0.001, 0.0005, 0.0, 0.0, -0.0005))
    found = compare("c0001", Evidence(("small", "large"), (100.0, 500.0), (pairs,)), 1)
    assert found.outcome is Outcome.FASTER
    assert found.ratio == pytest.approx(math.sqrt(1.1 * 1.2), rel=1e-3)
    assert [round(s.ratio, 2) for s in found.shapes] == [1.1, 1.2]
    assert found.low < found.ratio < found.high
    assert found.confidence > 0.99


def test_what_passes_in_the_first_pairs_makes_nobody_faster_but_drops_the_hopeless() -> None:
    def after(n_pairs: int, log_ratio: float, n_processes: int = 1) -> Outcome:
        pairs = tuple((log_ratio + 0.0001 * (i % 3),) for i in range(n_pairs))
        return decide(Evidence(("s",), (100.0,), (pairs,) * n_processes), 6)

    assert after(FASTER_PAIRS - 1, 0.2) is Outcome.UNCLEAR
    assert after(FASTER_PAIRS, 0.2) is after(FASTER_PAIRS - 1, 0.2, n_processes=3) is Outcome.FASTER
    assert after(3, -0.2) is Outcome.SLOWER


@pytest.mark.parametrize("shown", [0.0469, 0.0497, 0.0515, 0.0548, 0.0568, 0.0819, -0.0337, -0.0336])
def test_what_a_small_kernel_showed_against_itself_on_an_h200_decides_nothing(shown: float) -> None:
    pairs = tuple((shown + 0.004 * (i % 3 - 1),) for i in range(20))
    assert all(decide(Evidence(("s",), (7.81,), (pairs[:n],)), 6) is Outcome.UNCLEAR for n in looks(20))


def test_equal_times_are_a_tie_where_processes_are_alike_and_one_pair_decides_nothing() -> None:
    pairs = ((0.0,), (0.0001,), (-0.0001,), (0.0,))
    assert decide(Evidence(("s",), (500.0,), (pairs,)), 1) is Outcome.TIE
    assert decide(Evidence(("s",), (100.0,), (pairs,)), 1) is Outcome.UNCLEAR
    assert decide(Evidence(("s",), (100.0,), (pairs, pairs, pairs)), 1) is Outcome.TIE
    assert decide(Evidence(("s",), (500.0,), (((0.5,),),)), 1) is Outcome.UNCLEAR


@given(st.integers(0, 40))
def test_looks_grow_and_end_at_the_limit(max_pairs: int) -> None:
    taken = looks(max_pairs)
    assert list(taken) == sorted(set(taken))
    assert (taken[-1] if taken else 0) == max_pairs


def test_every_pair_gives_both_sides_two_turns_and_the_start_alternates() -> None:
    assert all(abba(i).count(Turn.CANDIDATE) == 2 for i in range(4))
    assert abba(0)[0] is not abba(1)[0]


@given(st.floats(0.01, 1e6))
def test_blocks_have_few_long_calls_and_many_short_ones(call_us: float) -> None:
    assert (2 if call_us >= 5000 else 4) <= calls_per_block(call_us) <= (2 if call_us >= 5000 else 24)


@given(st.lists(st.floats(1.0, 1e4), min_size=1, max_size=6))
def test_processes_move_shapes_neither_as_one_nor_each_by_itself(times_us: list[float]) -> None:
    scales = [process_sigma(us) for us in times_us]
    as_one = sum(scales) / len(scales)
    apart = math.sqrt(sum(s * s for s in scales)) / len(scales)
    mean = math.sqrt(process_variance(times_us))
    assert apart <= mean * (1 + 1e-9)
    assert mean <= as_one * (1 + 1e-9)
    assert mean < as_one * 0.9 or len(times_us) == 1 or max(scales) > 2 * min(scales)
