"""What vetting found of a problem: whether null kernels, which compute nothing, would pass its gate."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

#: What KernelBench's own evaluator asks for: torch.allclose with this as atol and rtol.
KERNELBENCH_ALLCLOSE = 1e-2


class Flaw(StrEnum):
    """What makes a problem unfit for a search. A problem with none is sound."""

    NULL_PASSES = "null_passes"
    REFERENCE_RAISES = "reference_raises"
    BAD_INPUTS = "bad_inputs"
    BAD_OUTPUT = "bad_output"
    NOT_DETERMINISTIC = "not_deterministic"
    INPUT_MODIFIED = "input_modified"
    BAD_TOLERANCE = "bad_tolerance"
    BAD_FORMULA = "bad_formula"
    TOO_LARGE = "too_large"
    NOTHING_VETTED = "nothing_vetted"


@dataclass(frozen=True, slots=True)
class Complaint:
    """One flaw in one line: what is wrong and what to do."""

    flaw: Flaw
    what: str
    do: str

    def __str__(self) -> str:
        return f"{self.what}; {self.do}"


@dataclass(frozen=True, slots=True)
class Cell:
    """One null kernel's answer, judged as the gate judges a candidate's, for one output at one shape.

    Attributes:
        null: the null kernel's name.
        shape: the shape it was tried at; ``stands_for`` is the declared shape of which that has fewer rows.
        passes: whether the gate would let this answer pass.
        error, limit: relative L2 error and what is allowed; ``own`` is the reference's own in its dtype.
        rms, largest: of the answer; ``lowest_input`` the smallest value of any floating input.
    """

    null: str
    shape: str
    stands_for: str
    distribution: str
    output: int
    passes: bool
    error: float
    limit: float
    own: float
    rms: float
    largest: float
    lowest_input: float


@dataclass(frozen=True, slots=True)
class NullSummary:
    """One null kernel over all cells. ``closest``: its smallest error where it was caught, over the limit."""

    null: str
    n_cells: int
    n_caught: int
    closest: float
    passed_at: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DistributionFit:
    """How a reference bears a distribution: the least share of finite answers, and its largest own error."""

    distribution: str
    finite: float
    own: float


@dataclass(frozen=True, slots=True)
class Vetting:
    """``criterion``: in words. ``unvetted``: what could not be tried, and why. ``notes``: what is weak, not wrong."""

    problem: str
    device: str
    criterion: str
    complaints: tuple[Complaint, ...]
    nulls: tuple[NullSummary, ...]
    shapes: tuple[str, ...]
    distributions: tuple[str, ...]
    unvetted: tuple[str, ...]
    notes: tuple[str, ...]
    wall_s: float
    cpu_s: float = 0.0
    fits: tuple[DistributionFit, ...] = ()
    reductions: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        return not self.complaints

    @property
    def headline(self) -> str:
        """One line: how many null kernels were caught, or what is wrong first."""
        if self.complaints:
            more = f" ({len(self.complaints) - 1} more)" if len(self.complaints) > 1 else ""
            return f"{self.complaints[0]}{more}"
        return (
            f"all {len(self.nulls)} null kernels are caught on {len(self.shapes)} shapes "
            f"and {len(self.distributions)} distribution{'s' if len(self.distributions) > 1 else ''}"
        )


#: Null kernels by name, as a person reads them. Those of a reduction are named with it: ``quarter of matrix[1]``.
NULL_WORDS: Mapping[str, str] = {
    "zeros": "zeros",
    "ones": "a constant, 1",
    "mean": "the answer's mean everywhere",
    "row means": "each row's mean",
    "uniform weights": "rows of 1/n",
    "first row": "the first batch element's answer for all",
    "last call": "the answer to the last call's inputs",
    "last distribution": "the answer to another distribution's inputs",
    "rounded inputs": "the answer to inputs rounded to fewer bits",
    "last column missing": "the last column left at zero",
    "nan": "NaN everywhere",
}
