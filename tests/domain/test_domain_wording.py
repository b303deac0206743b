"""Counts, changes and confidences in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.domain.wording import counted, percent, sure


@pytest.mark.parametrize(
    ("n", "noun", "plural", "said"),
    [
        (0, "pair", None, "0 pairs"),
        (1, "pair", None, "1 pair"),
        (3, "pair", None, "3 pairs"),
        (1, "process", "processes", "1 process"),
        (3, "process", "processes", "3 processes"),
    ],
)
def test_a_count_agrees_with_its_noun(n: int, noun: str, plural: str | None, said: str) -> None:
    assert counted(n, noun, plural) == said


@pytest.mark.parametrize(
    ("ratio", "said"), [(1.342, "+34.2 %"), (0.9, "-10.0 %"), (1.0, "+0.0 %"), (0.99999, "+0.0 %")]
)
def test_a_ratio_reads_as_a_signed_change(ratio: float, said: str) -> None:
    assert percent(ratio) == said


@given(st.floats(0, 1))
def test_certainty_is_never_claimed(confidence: float) -> None:
    assert sure(confidence) not in ("100 %", "100.0 %")
    assert sure(confidence).endswith(" %")


@pytest.mark.parametrize(("confidence", "said"), [(1.0, "> 99.9 %"), (0.992, "99.2 %"), (0.87, "87 %")])
def test_a_confidence_has_the_digits_that_tell(confidence: float, said: str) -> None:
    assert sure(confidence) == said
