"""How far an output may be from the float64 oracle. Pure.

The referee measures; here the numbers are judged: relative L2 error at most max(2 x the reference's own error in its
dtype, the dtype's floor), a bound on single elements, and NaN and Inf exactly where the oracle has them.

An element's bound is absolute, for terms that cancel leave an error of their own size in a small one. It is never
tighter than a few times the relative limit of the whole, taken of that element: where few elements hold nearly all of
an output (a softmax with one large input a row), a multiple of its RMS would ask more of each than is asked of all.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kbtui.domain.problem import Tolerance
from kbtui.domain.verdict import Reason

OWN_ERROR_FACTOR = 2.0
OWN_ELEMENT_FACTOR = 4.0
#: How much further off, in proportion, one element may be than the whole: 4e-6 in float32, some 32 of its steps.
RELATIVE_ELEMENT_FACTOR = 4.0


@dataclass(frozen=True, slots=True)
class OutputErrors:
    """One output against the float64 oracle.

    Attributes:
        rel_l2: norm of the difference over the oracle's norm, over positions where both are finite.
        max_abs: largest difference there; ``worst`` is its flat index.
        rms: root mean square of the oracle's finite values.
        there: the oracle's magnitude at ``worst``; 0 where that is not known.
        own_rel_l2, own_max_abs: the same errors of the reference in its own dtype.
        nonfinite_wrong: positions whose NaN, +Inf or -Inf disagrees with oracle and reference; ``first_nonfinite``
            the first of them (-1: none).
        unwritten: how many of those hold the poison the mailbox or the output was filled with.
    """

    rel_l2: float
    max_abs: float
    worst: int
    rms: float
    own_rel_l2: float
    own_max_abs: float
    nonfinite_wrong: int
    first_nonfinite: int
    unwritten: int
    n: int
    there: float = 0.0


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an output does not pass, in one line."""

    reason: Reason
    detail: str


def relative_limit(errors: OutputErrors, tolerance: Tolerance) -> float:
    """Largest relative L2 error that passes."""
    own = errors.own_rel_l2 if math.isfinite(errors.own_rel_l2) else 0.0
    return max(OWN_ERROR_FACTOR * own, tolerance.floor)


def element_limit(errors: OutputErrors, tolerance: Tolerance) -> float:
    """Largest absolute error of one element that passes."""
    own = errors.own_max_abs if math.isfinite(errors.own_max_abs) else 0.0
    limit = relative_limit(errors, tolerance)
    of_its_own = RELATIVE_ELEMENT_FACTOR * limit * (errors.there if math.isfinite(errors.there) else 0.0)
    return max(tolerance.element * limit * errors.rms, of_its_own, OWN_ELEMENT_FACTOR * own)


def fault_of(errors: OutputErrors, tolerance: Tolerance) -> Fault | None:
    """The first thing wrong with one output, or None."""
    if errors.unwritten:
        return Fault(Reason.UNWRITTEN_OUTPUT, f"{errors.unwritten:,} of {errors.n:,} elements were never written")
    if errors.nonfinite_wrong:
        where = f"first at flat index {errors.first_nonfinite:,}"
        return Fault(Reason.NAN_MISMATCH, f"NaN or Inf differs at {errors.nonfinite_wrong:,} of {errors.n:,}, {where}")
    limit = relative_limit(errors, tolerance)
    if not errors.rel_l2 <= limit:
        own = f"the reference's own is {errors.own_rel_l2:.1e}"
        return Fault(Reason.WRONG_VALUES, f"relative L2 error {errors.rel_l2:.1e} > {limit:.1e} ({own})")
    bound = element_limit(errors, tolerance)
    if not errors.max_abs <= bound:
        where = f"at flat index {errors.worst:,}"
        return Fault(Reason.WRONG_VALUES, f"one element is off by {errors.max_abs:.1e} > {bound:.1e} {where}")
    return None


def largest_error(outputs: Sequence[OutputErrors]) -> float | None:
    """The largest relative L2 error, None without outputs."""
    return max((o.rel_l2 for o in outputs), default=None)
