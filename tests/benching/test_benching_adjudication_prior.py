"""The fit of the noise between processes: it finds what a sample was drawn with, and reads the kept records."""

import math
import random
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

from benchmarks.adjudication import read
from benchmarks.adjudication_prior import PART, ROWS, US, Seen, alike, fit, log_likelihood, of_pool, of_study, told
from kbtui.domain.measurement import Outcome
from kbtui.domain.pool import PoolCandidate, RecordedRung
from kbtui.evaluation.devices.replay import ReplayDevice
from kbtui.evaluation.measure.adjudicate import (
    PRIOR_DEGREES,
    PROCESS_SIGMA_PART,
    PROCESS_SIGMA_US,
    SHAPES_ALIKE,
    Evidence,
    decide,
)

POOLS = sorted((Path(__file__).parents[2] / "benchmarks/pools").glob("*.jsonl.gz"))


def drawn(rng: random.Random, degrees: int, us: float, part: float, n: int) -> list[Seen]:
    seen = []
    for time_us in (8.0, 40.0, 500.0) * (n // 3):
        t = rng.gauss(0, 1) / math.sqrt(rng.gammavariate(degrees / 2, 2) / degrees)
        seen.append(Seen(time_us, t * math.sqrt(2) * math.hypot(part, us / time_us)))
    return seen


def test_the_fit_finds_what_a_sample_was_drawn_with() -> None:
    seen = drawn(random.Random(1), 3, 0.09, 0.0008, 1500)
    found = fit(seen, 3)
    assert found.us == pytest.approx(0.09, abs=0.01)
    assert found.part == pytest.approx(0.0008, abs=0.0002)
    assert log_likelihood(seen, 3, 0.09, 0.0008) > max(log_likelihood(seen, d, 0.09, 0.0008) for d in (1, 30))


def test_no_wider_prior_fits_what_was_kept_better_than_the_one_in_use_and_the_one_before_it_was_too_narrow() -> None:
    """A prior that is wider than it need be costs power; one that is too narrow calls noise a winner."""
    seen = [s for path in POOLS for s in of_pool(ReplayDevice(path).pool)] + list(of_study(read(ROWS)))
    used = log_likelihood(seen, PRIOR_DEGREES, PROCESS_SIGMA_US, PROCESS_SIGMA_PART)
    wider = [(us, part) for us in US for part in PART if us >= PROCESS_SIGMA_US and part >= PROCESS_SIGMA_PART]
    assert len(wider) > 10
    assert used > max(log_likelihood(seen, PRIOR_DEGREES, *scale) for scale in wider) - 3.9  # chi squared, 3 degrees
    assert log_likelihood(seen, 8, 0.067, 0.001) < used - 10


def met_alike(candidate: PoolCandidate, rng: random.Random) -> PoolCandidate:
    """The same, had all shapes of a rung shown the same ratio, and every rung another one."""

    def alike_on(recorded: RecordedRung) -> RecordedRung:
        measurement, ratio = recorded.outcome.measurement, math.exp(rng.gauss(0, 0.01))
        if measurement is None:
            return recorded
        met = tuple(
            replace(c, shapes=tuple(replace(s, ratio=ratio) for s in c.shapes)) for c in measurement.comparisons
        )
        return replace(recorded, outcome=replace(recorded.outcome, measurement=replace(measurement, comparisons=met)))

    return replace(candidate, rungs=tuple(map(alike_on, candidate.rungs)))


def test_shapes_that_move_together_between_two_rungs_are_wholly_alike_though_the_screen_times_one_alone() -> None:
    pool, rng = ReplayDevice(POOLS[0]).pool, random.Random(0)
    assert alike(replace(pool, candidates=tuple(met_alike(c, rng) for c in pool.candidates))) == pytest.approx(1.0)


def test_shapes_of_one_process_are_no_more_alike_in_the_pools_than_is_reckoned_with_and_by_far_not_wholly() -> None:
    found = [alike(ReplayDevice(path).pool) for path in POOLS]
    assert all(-0.2 < r < 0.5 for r in found)
    assert fmean(found) < SHAPES_ALIKE


@pytest.mark.parametrize("time_us", [8.0, 100.0, 400.0])
def test_the_least_lead_that_can_be_told_is_where_the_decision_turns(time_us: float) -> None:
    least = math.log1p(told(time_us, 1))
    for part, outcome in ((0.99, Outcome.UNCLEAR), (1.01, Outcome.FASTER)):
        assert decide(Evidence(("s",), (time_us,), (((part * least,),) * 20,)), 6) is outcome
