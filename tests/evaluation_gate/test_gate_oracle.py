"""An output's errors beside the oracle: the worst element, how far off it is, and what should be there."""

from collections.abc import Callable

import pytest
import torch

from kbtui.evaluation.roles import oracle


def _doubled(x: torch.Tensor) -> torch.Tensor:
    return 2.0 * x


@pytest.mark.parametrize(
    "measure",
    [oracle.measure, oracle._measured_by_kind],
    ids=["at once", "by kind"],
)
def test_the_worst_element_is_told_with_what_should_be_there(
    measure: Callable[[torch.Tensor, oracle.Expected], oracle.OutputErrors],
) -> None:
    inputs = torch.tensor([[0.25, -3.0, 1e-6]])
    (expected,) = oracle.expect(_doubled, [inputs])
    got = _doubled(inputs)
    got[0, 1] += 0.5
    found = measure(got, expected)
    assert (found.worst, found.max_abs, found.there) == (1, 0.5, 6.0)


def test_of_a_large_right_answer_nothing_is_said_to_be_worst() -> None:
    """Where it is would cost another pass over all of it."""
    inputs = torch.ones(2, oracle.SMALL)
    (expected,) = oracle.expect(_doubled, [inputs])
    found = oracle.measure(_doubled(inputs), expected)
    assert (found.worst, found.max_abs, found.there) == (-1, 0.0, 0.0)
