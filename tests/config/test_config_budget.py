from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.budget import format_duration, parse_duration_s
from kbtui.errors import UsageError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("10m", 600), ("1h30m", 5400), ("1h30m10s", 5410), ("2.5h", 9000), ("45", 45), (" 3M ", 180)],
)
def test_durations_people_write_are_understood(text, seconds):
    assert parse_duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "0s", "0", "-5m", "5 minutes", "5d", "30m1h", "1h1h", "nan", "inf", "1e3s"])
def test_anything_else_is_refused_with_an_example(text):
    with pytest.raises(UsageError, match="is not a duration; write it as 90s, 10m or 1h30m"):
        parse_duration_s(text)


@given(st.integers(1, 10_000_000_000))
def test_a_formatted_duration_reads_back_to_the_millisecond(milliseconds):
    seconds = milliseconds / 1000
    assert parse_duration_s(format_duration(seconds)) == pytest.approx(seconds, abs=1e-6)


@given(st.text())
def test_any_text_is_a_duration_above_zero_or_a_usage_error(text):
    with suppress(UsageError):
        assert parse_duration_s(text) > 0
