"""What the referee keeps between candidates, and the quick way to measure an output beside the thorough one."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kbtui.evaluation.roles import oracle
from kbtui.evaluation.roles.known import Known

NUMBERS = st.one_of(st.floats(width=32), st.sampled_from([0.0, math.nan, math.inf, -math.inf, 1e30]))


def drawn(n: int) -> tuple[torch.Tensor]:
    return (torch.full((n,), 1.0),)


def answered(inputs: tuple[torch.Tensor, ...]) -> list[oracle.Expected]:
    return oracle.expect(lambda x: x.add_(1), inputs)


def test_a_question_is_drawn_and_answered_once() -> None:
    known, asked = Known(1 << 20), []
    for _ in range(3):
        inputs = known.inputs(("a",), lambda: asked.append("drawn") or drawn(4))  # type: ignore[func-returns-value]
        known.expected(("a",), lambda copies: asked.append("answered") or answered(copies))  # type: ignore[func-returns-value]
    assert asked == ["drawn", "answered"]
    assert inputs[0].tolist() == [1.0] * 4


def test_a_reference_that_writes_to_its_inputs_leaves_the_kept_ones_alone() -> None:
    known = Known(1 << 20)
    known.inputs(("a",), lambda: drawn(4))
    assert known.expected(("a",), answered)[0].own.tolist() == [2.0] * 4
    assert known.inputs(("a",), lambda: drawn(9))[0].tolist() == [1.0] * 4


def test_what_was_not_asked_for_longest_goes_when_room_is_short() -> None:
    known = Known(2048)
    for name in "abcdefgh":
        known.inputs((name,), lambda: drawn(128))
        known.inputs(("a",), lambda: drawn(128))
    assert known.n_bytes <= 2048
    assert ("a",) in known
    assert ("h",) in known
    assert ("b",) not in known


def test_a_question_too_large_is_not_kept() -> None:
    known = Known(4096)
    assert known.inputs(("a",), lambda: drawn(1000))[0].numel() == 1000
    assert ("a",) not in known


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=20))
@settings(max_examples=200, deadline=None)
def test_the_quick_measure_agrees_with_the_thorough_one(pairs: list[tuple[float, float]]) -> None:
    want, got = (torch.tensor(column, dtype=torch.float32) for column in zip(*pairs, strict=True))
    [expected] = oracle.expect(lambda x: x * 1.0, (want,))
    quick, thorough = oracle.measure(got, expected), oracle._measured_by_kind(got, expected)
    assert (quick.nonfinite_wrong, quick.unwritten, quick.n) == (
        thorough.nonfinite_wrong, thorough.unwritten, thorough.n,
    )  # fmt: skip
    for name in ("rel_l2", "max_abs", "rms"):
        assert getattr(quick, name) == pytest.approx(getattr(thorough, name), rel=1e-6), name
    assert quick.worst == thorough.worst or quick.max_abs == 0
