import pytest

from kbtui.domain.measurement import Outcome
from kbtui.evaluation.modelled.compare import compare, timings
from kbtui.evaluation.modelled.time import ModelledTime


def _times(**by_shape: float) -> dict[str, ModelledTime]:
    return {name: ModelledTime(name, us, 3.0, 0.0, (), 1.0, 1.0) for name, us in by_shape.items()}


@pytest.mark.parametrize(
    ("other_us", "outcome"), [(200.0, Outcome.FASTER), (50.0, Outcome.SLOWER), (100.05, Outcome.TIE)]
)
def test_the_faster_one_is_faster_for_certain(other_us: float, outcome: Outcome) -> None:
    found = compare("c1", _times(a=100.0), _times(a=other_us))
    assert found.outcome is outcome
    assert found.low == found.high == found.ratio == pytest.approx(other_us / 100.0)
    assert found.confidence == 1.0


def test_shapes_count_alike_in_a_geometric_mean() -> None:
    found = compare("c1", _times(a=10.0, b=1000.0), _times(a=20.0, b=500.0))
    assert found.ratio == pytest.approx(1.0)
    assert [s.ratio for s in found.shapes] == [pytest.approx(2.0), pytest.approx(0.5)]


def test_a_modelled_timing_has_no_interval() -> None:
    (timing,) = timings(_times(a=10.0))
    assert timing.low_us == timing.device_us == timing.high_us == 10.0
