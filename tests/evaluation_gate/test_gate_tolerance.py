from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.domain.problem import Tolerance
from kbtui.domain.verdict import Reason
from kbtui.evaluation.gate.tolerance import OutputErrors, fault_of, relative_limit

RIGHT = OutputErrors(2e-7, 1e-7, 3, 1.0, 1e-7, 1e-7, 0, -1, 0, 1000)
TOLERANCE = Tolerance(1e-6)


@pytest.mark.parametrize(
    ("errors", "reason"),
    [
        (replace(RIGHT, rel_l2=7.6e-4), Reason.WRONG_VALUES),
        (replace(RIGHT, rel_l2=float("nan")), Reason.WRONG_VALUES),
        (replace(RIGHT, max_abs=0.1), Reason.WRONG_VALUES),
        (replace(RIGHT, nonfinite_wrong=1, first_nonfinite=7), Reason.NAN_MISMATCH),
        (replace(RIGHT, nonfinite_wrong=4, unwritten=4), Reason.UNWRITTEN_OUTPUT),
    ],
)
def test_each_kind_of_wrong_output_has_its_reason(errors: OutputErrors, reason: Reason) -> None:
    fault = fault_of(errors, TOLERANCE)
    assert fault is not None
    assert fault.reason is reason


def test_an_honest_output_passes() -> None:
    assert fault_of(RIGHT, TOLERANCE) is None


@given(st.floats(0, 1), st.floats(1e-8, 1e-2))
def test_the_limit_is_never_below_twice_the_references_own_error_nor_below_the_floor(own: float, floor: float) -> None:
    limit = relative_limit(replace(RIGHT, own_rel_l2=own), Tolerance(floor))
    assert limit >= 2 * own
    assert limit >= floor


@given(st.floats(1e-6, 1.0), st.floats(0.0, 1.0))
def test_no_element_is_asked_to_be_closer_in_proportion_than_the_whole(rms: float, there: float) -> None:
    """However little of the output's magnitude lies elsewhere."""
    off = replace(RIGHT, rms=rms, there=there, max_abs=relative_limit(RIGHT, TOLERANCE) * there)
    assert fault_of(off, TOLERANCE) is None


def test_a_small_element_beside_large_ones_may_not_be_off_by_as_much_as_they() -> None:
    """1.5e-6 is twelve steps of a softmax's answer near one, and a wrong answer near zero."""
    spiky = replace(RIGHT, rms=0.004, max_abs=1.5e-6)
    assert fault_of(replace(spiky, there=0.9), TOLERANCE) is None
    assert fault_of(replace(spiky, there=0.001), TOLERANCE) is not None


def test_a_reference_that_is_not_finite_in_its_dtype_widens_nothing() -> None:
    errors = replace(RIGHT, own_rel_l2=float("nan"), own_max_abs=float("inf"), rel_l2=1e-3)
    assert fault_of(errors, TOLERANCE) is not None
