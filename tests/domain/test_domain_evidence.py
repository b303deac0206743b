"""How the numbers behind a diagnosis are told: everywhere in the same words, and as a person writes numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.domain.profile import Evidence


@pytest.mark.parametrize(
    ("evidence", "told"),
    [
        (Evidence("spilled", 15516.0, "bytes a thread"), "spilled 15,516 bytes a thread"),
        (Evidence("dram", 93.04, "% of peak"), "dram 93 % of peak"),
        (Evidence("sm", 0.26, "% of peak"), "sm 0.3 % of peak"),
        (Evidence("headroom", 1.6149, "times"), "headroom 1.61 times"),
        (Evidence("waves", 0.0417, ""), "waves 0.042"),
        (Evidence("long_scoreboard", 0.0, "%"), "long scoreboard 0.0 %"),
        (Evidence("bytes", 2.147e9, "B"), "bytes 2,147,000,000 B"),
    ],
)
def test_a_number_is_told_as_a_person_writes_it(evidence: Evidence, told: str) -> None:
    assert evidence.told == told


@given(st.floats(1e-4, 1e15) | st.just(0.0), st.sampled_from(["", "B", "% of peak"]))
def test_no_number_has_an_exponent_and_none_is_far_off(value: float, unit: str) -> None:
    number = Evidence("x", value, unit).told.split()[1]
    assert "e" not in number
    assert float(number.replace(",", "")) == pytest.approx(value, rel=0.06, abs=0.05 if unit.startswith("%") else 0)
