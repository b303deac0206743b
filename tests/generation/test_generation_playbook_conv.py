"""Convolutions are right where rows are wider than a tile, groups wider than a step, and with strides."""

from pathlib import Path

import pytest

from kbtui.domain.device import DATA_SHEETS
from kbtui.generation.playbook import load_entries
from kbtui.generation.rewrites import tile_size
from kbtui.generation.rewrites.rewrite import Target
from kbtui.problems import load_problem

A100 = DATA_SHEETS["a100"]
PROBLEMS = Path(__file__).parents[1] / "data" / "kernels" / "problems"
STRIDED, DILATED = (str(PROBLEMS / name) for name in ("strided_conv", "dilated_conv"))
LIMITS = {"float32": 1e-6, "float16": 1e-3}
#: Two tiles side by side, of which the last moves back or has few columns; a group's channels in several steps.
WIDE = {"batch": 1, "c_in": 4, "c_out": 6, "height": 3, "width": 130, "groups": 2}
DEEP = {"batch": 1, "c_in": 17, "c_out": 10, "height": 4, "width": 6, "groups": 1}


#: The structures that cut rows into tiles.
BY_TILES = ("conv_row_block", "conv_banded_product")
DIRECT = ("conv_direct_group",)


def jobs_of(problem, dims, dtype="float32", names=None, **changed):
    spec = load_problem(problem).spec
    return [
        {"label": entry.name, "source": entry.instantiate(entry.defaults() | changed, A100, spec),
         "problem": problem, "dims": dims, "layout": "contiguous", "dtype": dtype}
        for entry in load_entries("conv")
        if set(changed) <= set(entry.defaults()) and (names is None or entry.name in names)
    ]  # fmt: skip


def assert_right(jobs, rows):
    assert jobs
    wrong = [
        (job["label"], job["dims"], row)
        for job, row in zip(jobs, rows, strict=True)
        if "failed" in row or row["error"] > LIMITS[job["dtype"]] or not row["shape_ok"]
    ]
    assert not wrong


@pytest.mark.parametrize("dims", [WIDE, DEEP])
def test_convolutions_by_tiles_are_right_past_one_tile(dims, interpret):
    assert_right(jobs := jobs_of("group_conv", dims, names=BY_TILES), interpret(jobs))


@pytest.mark.parametrize(
    ("problem", "dtype"), [(STRIDED, "float32"), (DILATED, "float32"), (DILATED, "float16")],
    ids=["strided", "dilated", "dilated in half precision"],
)  # fmt: skip
def test_every_convolution_keeps_to_strides_padding_and_dilation(problem, dtype, interpret):
    dims = load_problem(problem).spec.shapes[-1].as_dict()

    assert_right(jobs := jobs_of(problem, dims, dtype), interpret(jobs))


def test_narrow_tiles_with_strides_share_their_edges(interpret):
    dims = {"batch": 1, "c_in": 2, "c_out": 2, "height": 6, "width": 75, "groups": 2}

    assert_right(jobs := jobs_of(STRIDED, dims, LEFT=16, COLUMNS=64), interpret(jobs))


def test_tiles_scaled_by_a_rewrite_are_right_where_a_group_is_wider_than_any(interpret):
    """A kernel that writes its sums out one by one left channels unwritten when its constant was doubled."""
    wide = {"batch": 1, "c_in": 1, "c_out": 20, "height": 2, "width": 3, "groups": 1}
    target = Target.of(A100, load_problem("group_conv").spec)
    jobs = [
        job | {"label": f"{job['label']} {edit.summary}", "source": edit.source}
        for job in jobs_of("group_conv", wide)
        for edit in tile_size.REWRITE.apply(job["source"], target)
        if edit.params[0][0] == "OUT_CHANNELS"
    ]
    assert any("OUT_CHANNELS 8 to 16" in job["label"] for job in jobs)

    assert_right(jobs, interpret(jobs))


def test_half_precision_is_summed_in_full(interpret):
    assert_right(jobs := jobs_of("group_conv", WIDE, "float16", names=BY_TILES), interpret(jobs))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_wide_groups_and_ragged_rows_spill_no_registers(dtype, compile_for):
    """Many input channels for few output channels; several steps of them; rows that begin at no vector of pixels."""
    wide = {"batch": 1, "c_in": 64, "c_out": 32, "height": 63, "width": 65, "groups": 1}
    ragged = {"batch": 2, "c_in": 35, "c_out": 14, "height": 31, "width": 33, "groups": 7}
    jobs = [job for dims in (wide, ragged) for job in jobs_of("group_conv", dims, dtype, ("conv_banded_product",))]
    even = {"batch": 16, "c_in": 64, "c_out": 64, "height": 128, "width": 128, "groups": 8}
    jobs += [job for dims in (ragged | {"c_out": 70}, even) for job in jobs_of("group_conv", dims, dtype, DIRECT)]

    rows = compile_for(80, jobs)

    spilled = [[kernel["spill_bytes"] for kernel in row["kernels"]] for row in rows]
    assert spilled == [[0]] * 4, rows
