"""Real kernels through the real tracer in confined children."""

from types import ModuleType

import pytest

from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.problem import Problem, Shape, ShapeRole
from kbtui.evaluation.modelled.clock import ModelledClock
from kbtui.evaluation.modelled.trace import CallTrace
from kbtui.evaluation.modelled.tracing import Tracer, Untraced
from kbtui.evaluation.process import Zygote

A100 = DATA_SHEETS["a100"]


@pytest.fixture
def large(softmax: Problem) -> Shape:
    return softmax.spec.shapes_of(ShapeRole.TUNE)[0]


def _trace(tracer: Tracer, source: str, shape: Shape) -> CallTrace:
    found = tracer.traces(source, [shape])[shape.name]
    assert isinstance(found, CallTrace), found
    return found


def test_one_pass_moves_the_bytes_the_problem_needs(
    planted: ModuleType, tracer: Tracer, softmax: Problem, large: Shape
) -> None:
    (launch,) = _trace(tracer, planted.one_pass(), large).launches
    assert launch.kernel == "one_pass"
    assert launch.grid == (4096, 1, 1)
    assert launch.num_warps == 16
    assert launch.moved_bytes() == softmax.spec.bytes_moved(large)
    assert launch.vector_bytes == 16
    assert launch.reductions == 2


def test_three_passes_are_seen_as_rereads(tracer: Tracer, softmax: Problem, large: Shape) -> None:
    assert softmax.kernel_source is not None
    (launch,) = _trace(tracer, softmax.kernel_source, large).launches
    assert launch.moved_bytes() == pytest.approx(2 * softmax.spec.bytes_moved(large), rel=0.01)
    read = next(t for t in launch.tensors if t.load_bytes)
    assert read.unique_load_sectors == pytest.approx(read.load_sectors / 3, rel=0.01)
    assert launch.phases == 12


def test_uncoalesced_loads_move_eight_times_their_bytes(planted: ModuleType, tracer: Tracer, large: Shape) -> None:
    (launch,) = _trace(tracer, planted.UNCOALESCED, large).launches
    assert launch.moved_bytes() == pytest.approx(8 * launch.asked_bytes(), rel=0.01)


def test_launches_alike_are_counted_not_traced(planted: ModuleType, tracer: Tracer, large: Shape) -> None:
    trace = _trace(tracer, planted.LAUNCH_PER_ROW, large)
    assert sum(launch.count for launch in trace.launches) == 4096
    assert len(trace.launches) < 10


def test_a_copy_by_pytorch_is_counted(planted: ModuleType, tracer: Tracer, softmax: Problem, large: Shape) -> None:
    trace = _trace(tracer, planted.COPIED_FIRST.replace("WARPS", "16"), large)
    assert [op.name for op in trace.torch_ops] == ["clone"]
    assert trace.torch_ops[0].bytes_moved == softmax.spec.bytes_moved(large)


def test_a_trace_is_the_same_every_time(
    planted: ModuleType, interpreting: Zygote, tracer: Tracer, large: Shape
) -> None:
    again = Tracer(interpreting, tracer._inputs, A100)
    assert again.traces(planted.grid_stride(216), [large]) == tracer.traces(planted.grid_stride(216), [large])


def test_planted_kernels_rank_as_they_should(
    planted: ModuleType, tracer: Tracer, softmax: Problem, large: Shape
) -> None:
    assert softmax.kernel_source is not None
    clock = ModelledClock(softmax.spec, A100, tracer)

    def time_us(source: str) -> float:
        return clock.times(source, [large], ())[large.name].time_us

    best = time_us(planted.one_pass())
    assert time_us(planted.grid_stride(432)) == pytest.approx(best, rel=0.15)
    assert time_us(planted.COPIED_FIRST.replace("WARPS", "16")) > 1.7 * best
    assert time_us(softmax.kernel_source) > 1.5 * best
    assert time_us(planted.grid_stride(8)) > 2 * best
    assert time_us(planted.grid_stride(1)) > 20 * best
    assert time_us(planted.LAUNCH_PER_ROW) > 10 * best
    assert time_us(planted.UNCOALESCED) > 10 * best


def test_a_kernel_that_does_not_end_is_given_up_and_modelled_from_nothing_good(
    planted: ModuleType, interpreting: Zygote, tracer: Tracer, softmax: Problem, large: Shape
) -> None:
    endless = planted.ENDLESS.replace("WARPS", "16")
    impatient = Tracer(interpreting, tracer._inputs, A100, timeout_s=20.0)
    found = impatient.traces(endless, [large])[large.name]
    assert isinstance(found, Untraced)
    clock = ModelledClock(softmax.spec, A100, impatient)
    time_us = clock.times(endless, [large], ())[large.name].time_us
    assert time_us > 4 * clock.bound_us(large)
    assert "proxy" in (clock.doubt(endless, [large]) or "")


def test_a_candidate_that_kills_its_child_costs_no_other_trace(
    planted: ModuleType, tracer: Tracer, softmax: Problem
) -> None:
    shapes = softmax.spec.shapes_of(ShapeRole.TUNE)
    found = tracer.traces(planted.CRASHING.replace("WARPS", "16"), shapes)
    assert all(isinstance(t, Untraced) for t in found.values())
    assert isinstance(_trace(tracer, planted.one_pass(8), shapes[0]), CallTrace)
