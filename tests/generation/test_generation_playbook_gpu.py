"""The playbook's times on a GPU: tiles are ranked by their own times, eager's come from the device's comparison."""

import json
from pathlib import Path

import pytest

from benchmarks import playbook_gpu
from benchmarks.playbook.gate import beside_eager
from benchmarks.playbook.points import in_dtype, instantiations, named_points
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


def test_an_entry_goes_with_fewer_tiles_where_its_grid_holds_no_more():
    entry = next(e for e in load_entries(load_problem("softmax").spec.family) if e.name == "softmax_several_rows")

    some, all_there_are = instantiations(entry, 6, seed=0), instantiations(entry, 1000, seed=0)

    assert len(some) == 7
    assert all_there_are[:7] == some
    assert 7 < len(all_there_are) < 1000
    assert all(point not in all_there_are[:number] for number, point in enumerate(all_there_are))


def test_workers_get_the_gpu_that_the_gate_means(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked: dict[str, str] = {}

    def machine(index: str) -> dict[str, str]:
        return {"gpu": "NVIDIA H200", "index": index}

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,GPU-7")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(playbook_gpu, "machine", machine)
    monkeypatch.setattr(playbook_gpu, "check_all", lambda rows, command, n, index, until: asked.update(check=index))
    monkeypatch.setattr(playbook_gpu, "time_all", lambda rows, command, index, until: asked.update(time=index))
    monkeypatch.setattr(playbook_gpu, "gate_all", lambda rows, device, until, save: asked.update(gate=device))

    playbook_gpu.main(["--device", "cuda:1", "--problems", "softmax", "--out", str(tmp_path / "out.json")])

    assert asked == {"check": "GPU-7", "time": "GPU-7", "gate": "cuda:1"}
    assert json.loads((tmp_path / "out.json").read_text())["machine"]["index"] == "GPU-7"


def test_without_a_place_for_results_nothing_is_begun(monkeypatch: pytest.MonkeyPatch, capsys):
    monkeypatch.setattr(playbook_gpu, "machine", lambda index: pytest.fail("it began"))

    with pytest.raises(SystemExit):
        playbook_gpu.main(["--device", "cuda:0"])

    assert "--out" in capsys.readouterr().err


def test_a_problem_is_timed_in_another_dtype_on_the_same_shapes(tmp_path):
    ours, copy = load_problem("group_conv").spec, load_problem(in_dtype("group_conv", "float16", tmp_path)).spec

    assert {copy.dtype_of(shape) for shape in copy.shapes} == {"float16"}
    assert [shape.as_dict() for shape in copy.shapes] == [shape.as_dict() for shape in ours.shapes]
    assert (copy.name, copy.family) == (ours.name, ours.family)
