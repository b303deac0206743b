"""The value a kernel was picked by stays beside the confirmed one, on the same shapes."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.domain.event import Decision, RungCompleted
from kbtui.domain.measurement import Clock, Outcome, ShapeRatio, ShapeTiming
from kbtui.domain.rung import CONFIRM, MEASURE, SCREEN
from kbtui.scheduler.shrinkage import shrinkage_words, shrinkages
from kbtui.scheduler.state import Tried
from tests.fakes.decided import admitted, against, timed


def on(shapes: dict[str, float], score: float, rung: int, clock: Clock = Clock.MEASURED) -> RungCompleted:
    ratios = tuple(ShapeRatio(name, ratio, ratio, ratio) for name, ratio in shapes.items())
    outcome = timed(replace(against("first", score, Outcome.FASTER), shapes=ratios), clock=clock)
    assert outcome.measurement is not None
    timings = tuple(ShapeTiming(name, 100.0, 99.0, 101.0, 20) for name in shapes)
    outcome = replace(outcome, measurement=replace(outcome.measurement, timings=timings))
    return RungCompleted("c0002", rung, outcome, Decision.PROMOTE, "", score, False)


def tried(*results: RungCompleted) -> Tried:
    event = admitted(2)
    return Tried(event.candidate, event.commit, SCREEN, 1, {r.rung: r for r in results}, None)


def test_each_rung_is_compared_on_its_own_shapes_only() -> None:
    confirmed = on({"small": 1.2, "large": 1.8}, 1.47, CONFIRM)
    screen, measure = shrinkages(
        tried(on({"small": 1.25}, 1.25, SCREEN), on({"small": 1.2, "large": 1.9}, 1.5, MEASURE), confirmed)
    )
    assert screen.confirmed == pytest.approx(1.2)
    assert screen.part == pytest.approx(1.2 / 1.25 - 1)
    assert measure.confirmed == pytest.approx(math.sqrt(1.2 * 1.8))
    assert shrinkage_words(screen) == "1.25× on rung 1 (1 shape), confirmed 1.20× there: -4.0 %"


def test_nothing_is_said_before_it_is_confirmed_or_of_modelled_times() -> None:
    assert shrinkages(tried(on({"small": 1.2}, 1.2, SCREEN))) == ()
    modelled = tried(on({"s": 1.2}, 1.2, SCREEN, Clock.MODELLED), on({"s": 1.2}, 1.2, CONFIRM, Clock.MODELLED))
    assert shrinkages(modelled) == ()


def test_a_rung_that_timed_a_shape_which_was_not_confirmed_is_left_out() -> None:
    assert shrinkages(tried(on({"other": 1.2}, 1.2, SCREEN), on({"small": 1.2}, 1.2, CONFIRM))) == ()


@given(st.floats(0.2, 5.0), st.floats(0.2, 5.0))
def test_what_was_screened_times_one_and_the_part_is_what_was_confirmed(screened: float, confirmed: float) -> None:
    (found,) = shrinkages(tried(on({"s": screened}, screened, SCREEN), on({"s": confirmed}, confirmed, CONFIRM)))
    assert found.screened * (1 + found.part) == pytest.approx(confirmed)
