import random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.evaluation.measure.robust import median, median_interval, t_cdf, t_quantile, trimmed_location

finite = st.floats(-1e6, 1e6)


@pytest.mark.parametrize(
    ("p", "degrees", "expected"),
    [(0.975, 8, 2.306), (0.995, 2, 9.925), (0.995, 1, 63.657), (0.999, 120, 3.160), (0.9, 30, 1.310)],
)
def test_t_quantiles_agree_with_published_tables(p: float, degrees: int, expected: float) -> None:
    assert t_quantile(p, degrees) == pytest.approx(expected, abs=6e-4)


@given(st.floats(0.001, 0.999), st.integers(1, 200))
def test_t_cdf_inverts_its_quantile(p: float, degrees: int) -> None:
    assert t_cdf(t_quantile(p, degrees), degrees) == pytest.approx(p, abs=1e-6)


@given(st.lists(finite, min_size=1, max_size=60))
def test_median_interval_holds_the_median(samples: list[float]) -> None:
    middle, low, high = median_interval(samples)
    assert low <= middle == median(samples) <= high


@pytest.mark.parametrize("n", [9, 20, 101])
def test_median_interval_covers_the_truth_as_often_as_it_says(n: int) -> None:
    rng = random.Random(n)
    covered = 0
    for _ in range(2000):
        _, low, high = median_interval([rng.lognormvariate(0, 1) for _ in range(n)])
        covered += low <= 1.0 <= high
    assert covered / 2000 > 0.94


@given(st.lists(st.floats(-1, 1), min_size=10, max_size=40), st.floats(1e3, 1e9))
def test_one_wild_sample_moves_the_trimmed_mean_within_the_others(samples: list[float], wild: float) -> None:
    assert -1 <= trimmed_location([*samples, wild]).mean <= 1


def test_trimmed_location_of_few_samples_is_their_mean() -> None:
    assert trimmed_location([1.0, 2.0, 6.0]).mean == fmean([1.0, 2.0, 6.0])
    assert trimmed_location([3.0]).degrees == 0
