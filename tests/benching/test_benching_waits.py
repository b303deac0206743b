import random

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.waits import ELSEWHERE, Interval, Trace, fitted, idle_split, phase_of


@given(st.lists(st.floats(0, 1), min_size=2, max_size=4), st.integers(0, 1 << 32))
def test_a_fit_finds_the_shares_that_made_the_values(shares: list[float], seed: int) -> None:
    rng = random.Random(seed)
    rows = [[rng.random() for _ in shares] for _ in range(60)]
    values = [sum(r * s for r, s in zip(row, shares, strict=True)) for row in rows]
    assert all(abs(a - b) < 0.02 for a, b in zip(fitted(rows, values), shares, strict=True))


def test_the_idle_share_is_split_over_what_was_waited_for() -> None:
    """Windows of a second, in which a phase that keeps the GPU busy takes now more, now less of the time."""
    intervals, samples = [], {}
    for second in range(40):
        part = 0.2 + 0.6 * (second % 5) / 4
        intervals.append(Interval("timed", second, second + part))
        samples[(second + 1) * 1_000_000] = round(100 * part)
    split = idle_split(intervals, samples)
    assert split["timed"]["busy_share"] > 0.97
    assert split[ELSEWHERE]["busy_share"] < 0.03
    assert abs(sum(s["wall_share"] for s in split.values()) - 1) < 0.01
    assert list(split) == [ELSEWHERE, "timed"], "what leaves it idle comes first"


def test_what_a_spares_warming_was_made_of_is_told_apart_by_who_worked() -> None:
    trace = Trace()
    for _ in range(2):
        trace._add_laps({"context": [0.5, 0.1]})
    assert trace.a_candidate(2) == {
        "warming: context (beside)": [0.5, 1.0], "warming: context, own CPU (beside)": [0.1, 1.0],
    }  # fmt: skip
    assert trace.intervals == [], "others wait for it"


def test_calls_within_a_call_are_counted_and_take_no_time_of_their_own() -> None:
    trace = Trace()
    trace.timed("Zygote.spawn", lambda: trace.timed("candidate.warm", lambda: None))
    assert set(trace.seconds) == {"Zygote.spawn", "candidate.warm"}
    assert [i.phase for i in trace.intervals] == [phase_of("Zygote.spawn")]
