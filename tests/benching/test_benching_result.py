from hypothesis import given
from hypothesis import strategies as st

from kbtui.benching.result import histogram, samples_of

TIMES = st.lists(st.floats(0.5, 1e6, allow_nan=False), min_size=1, max_size=200).map(tuple)


@given(TIMES, st.integers(1, 64))
def test_every_sample_is_in_one_bin_and_the_bins_begin_at_the_least(samples: tuple[float, ...], n_bins: int) -> None:
    counts, low, high = histogram(samples, n_bins)
    assert sum(counts) == len(samples)
    assert len(counts) == n_bins
    assert low == min(samples) <= high <= max(samples)


def test_a_straggler_does_not_squeeze_the_rest_into_one_bin() -> None:
    counts, _, high = histogram((*(10 + i / 100 for i in range(200)), 500.0), 10)
    assert high < 13
    assert sum(1 for n in counts if n) == 10


def test_samples_of_all_processes_and_opponents_are_the_candidates_own() -> None:
    def pair(mine: float) -> dict[str, list[float]]:
        return {"candidate": [mine], "other": [99.0]}

    plain = {
        "alone": {"s": [1.0]},
        "processes": [
            {"eager": {"s": [pair(2.0)], "t": [pair(7.0)]}, "first": {"s": [pair(3.0)]}},
            {"eager": {"s": [pair(4.0)]}},
        ],
    }
    assert samples_of(plain) == {"s": (1.0, 2.0, 3.0, 4.0), "t": (7.0,)}
