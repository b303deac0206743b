"""The playbook's times on a GPU: tiles are ranked by their own times, eager's come from the device's comparison."""

from benchmarks.playbook.gate import beside_eager
from benchmarks.playbook.points import in_dtype, named_points
from benchmarks.playbook.rows import best_of
from kbtui.domain.measurement import Clock, Comparison, Measurement, Outcome, ShapeRatio, ShapeTiming
from kbtui.generation.playbook import load_entries
from kbtui.problems import load_problem


def test_the_fastest_of_each_shape_is_found_by_its_own_time():
    rows = [{"quick_us": {"a": 3.0, "b": 9.0}}, {"quick_us": {"a": 4.0, "b": 8.0}}, {"failed": "out of memory"}]

    assert best_of(rows) == {"a": rows[0], "b": rows[1]}


def test_eagers_time_is_the_kernels_times_their_ratio():
    timing = ShapeTiming("4096x65536", 500.0, 499.0, 501.0, 96)
    ratios = (ShapeRatio("4096x65536", 2.1, 2.09, 2.11),)
    eager = Comparison("eager", Outcome.FASTER, 2.1, 2.09, 2.11, 0.999, 12, 2, ratios)

    found = beside_eager(Measurement(Clock.MEASURED, (timing,), (eager,)))

    assert found == {"4096x65536": {"kernel": 500.0, "eager": 1050.0, "ratio": 2.1, "low": 2.09, "high": 2.11}}


def test_without_a_comparison_there_is_no_ratio():
    assert beside_eager(None) == {}
    assert beside_eager(Measurement(Clock.MODELLED, ())) == {}


def test_points_that_are_named_take_the_tiles_place_and_leave_out_what_the_entry_does():
    entry = next(e for e in load_entries("linear_relu_div") if e.name == "linear_sliced_k")

    points = named_points(entry, ["linear_sliced_k SLICES=8,16 K_BYTES=64,128", "linear_split_k STAGES=2"])

    assert points[0] == entry.defaults()
    assert [(p["SLICES"], p["K_BYTES"]) for p in points] == [(8, 128), (8, 64), (16, 64)]
    assert named_points(entry, ["linear_split_k STAGES=2"]) == []


def test_a_problem_is_timed_in_another_dtype_on_the_same_shapes(tmp_path):
    ours, copy = load_problem("group_conv").spec, load_problem(in_dtype("group_conv", "float16", tmp_path)).spec

    assert {copy.dtype_of(shape) for shape in copy.shapes} == {"float16"}
    assert [shape.as_dict() for shape in copy.shapes] == [shape.as_dict() for shape in ours.shapes]
    assert (copy.name, copy.family) == (ours.name, ours.family)
