"""Bars, sparklines, intervals, curves and numbers as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.tui import fmt
from kbtui.tui.draw import Level, bar, gauge, sparkline, step_curve
from kbtui.tui.glyphs import ASCII, UNICODE
from kbtui.tui.text import Role, Told, clip, fit_end, line, plain, spread, told_line, width_of, wrap


@given(st.floats(-1, 2), st.integers(1, 40), st.sampled_from([UNICODE, ASCII]))
def test_a_bar_is_as_wide_as_asked(fraction: float, width: int, g: object) -> None:
    assert len(bar(fraction, width, ASCII if g is ASCII else UNICODE)) == width


def test_a_full_bar_is_full_and_a_trace_is_seen() -> None:
    assert bar(1.0, 8, UNICODE) == "█" * 8
    assert bar(0.0, 8, UNICODE) == "·" * 8
    assert bar(0.0001, 8, UNICODE)[0] == "▏"


@given(st.lists(st.floats(1, 1e6), max_size=50), st.integers(1, 40))
def test_a_sparkline_is_as_wide_as_asked(values: list[float], width: int) -> None:
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    assert len(sparkline(values, width, low, high, UNICODE)) == width


@given(st.floats(0.2, 5), st.floats(0, 0.5), st.integers(9, 61))
def test_a_gauge_puts_faster_right_of_its_middle(ratio: float, half: float, width: int) -> None:
    drawn = gauge(ratio, ratio - half, ratio + half, width, UNICODE)
    assert len(drawn) == width
    assert drawn.count(UNICODE.point) == 1
    if ratio > 1.05:
        assert drawn.index(UNICODE.point) >= width // 2


@given(
    st.lists(st.tuples(st.floats(0, 100), st.floats(0.5, 3)), min_size=1, max_size=12),
    st.integers(20, 80),
    st.integers(3, 20),
)
def test_a_curve_keeps_its_size(points: list[tuple[float, float]], width: int, height: int) -> None:
    rows = step_curve(sorted(points), (Level(1.0, "eager"),), 100.0, width, height, UNICODE)
    assert len(rows) == height
    assert all(width_of(row) <= width for row in rows)
    assert sum(plain(row).count(UNICODE.point) for row in rows) == 1


@pytest.mark.parametrize(("seconds", "said"), [(0, "0:00"), (242, "4:02"), (3723, "1:02:03")])
def test_clock(seconds: float, said: str) -> None:
    assert fmt.clock(seconds) == said


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ((1.41, 1.39, 1.43), "1.41× (1.39–1.43)"),
        ((1.31, 1.306, 1.314), "1.310× (1.306–1.314)"),
        ((2.5, 2.5, 2.5), "2.50×"),
    ],
)
def test_an_interval_has_the_digits_that_tell_its_ends_apart(numbers: tuple[float, float, float], said: str) -> None:
    assert fmt.interval(*numbers, UNICODE) == said


@given(st.text(max_size=60), st.integers(1, 40))
def test_clipped_lines_fit(text: str, width: int) -> None:
    assert width_of(clip(line((text, Role.PLAIN)), width)) <= max(width, 0)


@given(
    st.text(st.sampled_from("abc xyz"), max_size=40), st.text(st.sampled_from("12"), max_size=8), st.integers(14, 60)
)
def test_spread_fills_the_width(left: str, right: str, width: int) -> None:
    assert width_of(spread(line(left), line(right), width)) == width


@given(st.text(st.sampled_from("ab c中\u0301"), max_size=120), st.integers(4, 30))
def test_wrapping_loses_no_word(text: str, width: int) -> None:
    rows = wrap(text, width)
    assert "".join("".join(plain(r) for r in rows).split()) == "".join(text.split())
    assert all(width_of(r) <= width for r in rows)


@given(st.text(max_size=60), st.integers(0, 40))
def test_a_text_cut_from_the_left_keeps_its_end_and_fits(text: str, width: int) -> None:
    cut = fit_end(text, width)
    assert width_of(line(cut)) <= max(width, 0) or cut == text
    assert text.endswith(cut.removeprefix("…"))


@given(st.text("abc/", min_size=1, max_size=60), st.text("xyz ", max_size=60), st.integers(3, 90))
def test_an_answer_says_its_path_first_and_whole_where_it_fits(path: str, words: str, width: int) -> None:
    said = plain(told_line(Told(words, path), width))
    assert width_of(line(said)) <= width
    if len(path) < width:
        assert said.startswith(f" {path}")
    else:
        assert path.endswith(said.split("…")[1])
