"""Which cases a call begins."""

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.six.part import CONTEST_LIMIT_S, Part


def test_without_a_limit_every_case_is_begun() -> None:
    assert Part(None, 45.0).has_room(1e9, searched=False)


def test_a_case_is_begun_only_if_it_would_end_in_time_by_what_the_others_took() -> None:
    part = Part(limit_s=300.0, search_s=45.0)
    assert part.has_room(0.0, searched=False)
    assert not part.has_room(130.0, searched=False)
    part.took(search_s=60.0, contest_s=70.0)
    assert part.has_room(165.0, searched=False)
    assert not part.has_room(175.0, searched=False)
    assert part.has_room(225.0, searched=True)


@given(st.lists(st.tuples(st.floats(0, 400), st.floats(0, 400))), st.floats(0, 2000))
def test_a_contest_has_at_least_a_minute_and_never_more_than_its_limit(
    took: list[tuple[float, float]], gone_s: float
) -> None:
    part = Part(540.0, 45.0)
    for search_s, contest_s in took:
        part.took(search_s, contest_s)
    assert 60.0 <= part.contest_limit_s(gone_s) <= CONTEST_LIMIT_S


def test_the_summary_names_what_is_finished_and_what_is_left() -> None:
    part = Part(540.0, 45.0, finished=["a", "b"], left=["c"])
    assert part.summary() == "2 finished: a, b; 1 left for another call: c"
    assert Part(None, 45.0).summary() == "nothing to do"
