"""What a person reads as the reason of a decision."""

from kbtui.domain.measurement import Clock, Comparison, Outcome
from kbtui.scheduler.reasons import comparison_words


def compared(outcome: Outcome, confidence: float, n_pairs: int, n_processes: int) -> Comparison:
    return Comparison("c0031", outcome, 1.041, 1.03, 1.052, confidence, n_pairs, n_processes)


def test_a_measured_reason_tells_the_interval_the_confidence_and_the_evidence() -> None:
    told = comparison_words(compared(Outcome.FASTER, 0.972, 14, 3), Clock.MEASURED)
    assert told == "+4.1 % (+3.0 to +5.2) over c0031, faster, 97 % sure, 14 pairs in 3 processes"


def test_one_of_a_thing_is_singular() -> None:
    assert comparison_words(compared(Outcome.FASTER, 1.0, 1, 1), Clock.MEASURED).endswith("1 pair in 1 process")


def test_nobody_is_sure_of_an_unclear_outcome() -> None:
    assert "sure" not in comparison_words(compared(Outcome.UNCLEAR, 0.42, 20, 1), Clock.MEASURED)


def test_the_first_kernel_is_called_by_its_name() -> None:
    first = Comparison("first", Outcome.FASTER, 1.5, 1.5, 1.5, 1.0, 1, 1)
    assert comparison_words(first, Clock.MODELLED) == "+50.0 % over the first kernel (modelled)"
