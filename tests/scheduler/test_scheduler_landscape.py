"""Whole searches on planted landscapes whose costs a rung are those of an H200."""

from functools import cache
from statistics import mean

import pytest

from benchmarks.landscapes import COST_S, LandscapeDevice, regret, search
from kbtui.domain.rung import CONFIRM, MEASURE, PROFILE
from kbtui.engine.engine import Engine

BUDGET_S = 180.0
SEEDS = range(12)


@cache
def searched(seed: int) -> tuple[Engine, LandscapeDevice]:
    return search(seed, BUDGET_S)


def test_three_minutes_come_within_a_tenth_of_the_best_there_is() -> None:
    assert mean(regret(*searched(seed)) for seed in SEEDS) < 0.08


def test_most_of_the_time_goes_to_measuring_not_to_profiling() -> None:
    seconds = [searched(seed)[1].seconds for seed in SEEDS]
    total_s = sum(sum(s.values()) for s in seconds)
    assert sum(s.get(PROFILE, 0.0) for s in seconds) < 0.3 * total_s
    assert sum(s[MEASURE] for s in seconds) > 0.35 * total_s


@pytest.mark.parametrize("seed", SEEDS)
def test_there_is_a_champion_and_the_budget_is_kept(seed: int) -> None:
    engine, device = searched(seed)
    assert engine.state.champion is not None
    assert device.now_s <= BUDGET_S + 1.0


@pytest.mark.parametrize("seed", SEEDS)
def test_nobody_is_confirmed_who_was_only_screened_or_far_behind(seed: int) -> None:
    state = searched(seed)[0].state
    confirmed = [t for t in state.tried.values() if CONFIRM in t.results]
    assert len(confirmed) <= 3
    best = max(t.results[MEASURE].score or 0.0 for t in state.tried.values() if MEASURE in t.results)
    assert all(MEASURE in t.results for t in confirmed)
    assert all((t.results[MEASURE].score or 0.0) > 0.8 * best for t in confirmed)


def test_the_same_seed_searches_the_same_way() -> None:
    once, again = (search(3, BUDGET_S)[0].state for _ in range(2))
    assert list(once.tried) == list(again.tried)
    assert once.champion == again.champion


def test_more_time_finds_better_kernels() -> None:
    longer = [search(seed, 2 * BUDGET_S) for seed in SEEDS]
    assert mean(regret(*s) for s in longer) < mean(regret(*searched(seed)) for seed in SEEDS)


def test_a_confirmation_is_never_begun_that_the_budget_does_not_bear() -> None:
    engine, device = search(0, 60.0)
    assert engine.state.champion is not None
    assert device.now_s <= 60.0 + COST_S[CONFIRM]
