"""Playbook kernels are right on odd shapes and strides in the interpreter, and fit an A100 without spills."""

import math
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.problem import ShapeRole
from kbtui.generation.playbook import Entry, load_entries
from kbtui.problems import load_problem

Job = dict[str, Any]
A100 = DATA_SHEETS["a100"]
PROBLEMS = ("softmax", "rms_norm", "mat_vec", "linear_relu_div", "sdp_attn", "group_conv")
LIMITS = {"float32": 1e-6, "float16": 1e-3}
#: Odd sizes: a prime, wider than any tile that is held, one element; and strides that are no contiguous tensor's.
ODD: dict[str, list[tuple[dict[str, int], str]]] = {
    "softmax": [
        ({"rows": 3, "cols": 1021}, "reversed"),
        ({"rows": 1, "cols": 65537}, "contiguous"),
        ({"rows": 1, "cols": 1}, "contiguous"),
    ],
    "rms_norm": [
        ({"batch": 3, "features": 7, "height": 5, "width": 11}, "sliced"),
        ({"batch": 1, "features": 1021, "height": 3, "width": 1}, "contiguous"),
        ({"batch": 2, "features": 65, "height": 3, "width": 5}, "reversed"),
    ],
    "mat_vec": [
        ({"rows": 13, "cols": 1021}, "reversed"),
        ({"rows": 1, "cols": 65537}, "contiguous"),
        ({"rows": 1, "cols": 1}, "contiguous"),
    ],
    "linear_relu_div": [
        ({"batch": 7, "n_in": 67, "n_out": 61}, "reversed"),
        ({"batch": 1, "n_in": 1, "n_out": 61}, "contiguous"),
        ({"batch": 33, "n_in": 128, "n_out": 64}, "contiguous"),
    ],
    "sdp_attn": [
        ({"batch": 1, "heads": 2, "seq": 37, "head_dim": 20}, "sliced"),
        ({"batch": 1, "heads": 1, "seq": 1, "head_dim": 16}, "contiguous"),
        ({"batch": 1, "heads": 1, "seq": 17, "head_dim": 260}, "contiguous"),
    ],
    "group_conv": [
        ({"batch": 1, "c_in": 3, "c_out": 6, "height": 7, "width": 5, "groups": 3}, "reversed"),
        ({"batch": 1, "c_in": 1, "c_out": 1, "height": 1, "width": 1, "groups": 1}, "contiguous"),
        ({"batch": 1, "c_in": 6, "c_out": 9, "height": 5, "width": 6, "groups": 3}, "sliced"),
    ],
}


def any_point(entry: Entry, rng: random.Random) -> dict[str, Any]:
    """A point of its grid that the entry does not keep out."""
    while True:
        point = {name: rng.choice(values) for name, values in entry.grid}
        if entry.why_kept_out(point) is None:
            return point


def instances(problem: str, n_random: int, seed: int = 0) -> list[tuple[str, str]]:
    """(label, source) of every entry's default and of some points of its grid."""
    spec = load_problem(problem).spec
    rng = random.Random(seed)
    found = []
    for entry in load_entries(spec.family):
        points = [entry.defaults()]
        points += [any_point(entry, rng) for _ in range(n_random)]
        found += [(f"{entry.name} {p}", entry.instantiate(p, A100, spec)) for p in points]
    return found


def jobs_on(
    problem: str, sources: list[tuple[str, str]], odd: list[tuple[dict[str, int], str]]
) -> list[dict[str, Any]]:
    return [
        {
            "label": label,
            "source": source,
            "problem": problem,
            "dims": dims,
            "layout": layout,
            "dtype": load_problem(problem).spec.dtype,
        }
        for label, source in sources
        for dims, layout in odd
    ]


def assert_right(jobs: list[Job], rows: list[dict[str, Any]]) -> None:
    wrong = [
        (job["label"], job["dims"], job["layout"], row)
        for job, row in zip(jobs, rows, strict=True)
        if "failed" in row or row["error"] > LIMITS[job["dtype"]] or not row["shape_ok"]
    ]
    assert not wrong


@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_structure_is_right_on_odd_shapes_and_strides(problem, interpret):
    """Every structure on two of the three shapes in turn, every second one with other constants."""
    points, odd = instances(problem, n_random=1), ODD[problem]
    structures = len(load_entries(load_problem(problem).spec.family))
    jobs = []
    for i, default in enumerate(points[::2]):
        jobs += jobs_on(problem, [default], [odd[i % 3], odd[(i + 1) % 3]])
    jobs += jobs_on(problem, points[1::4], odd[:1])
    assert len({job["source"] for job in jobs}) > structures

    assert_right(jobs, interpret(jobs))


@pytest.mark.slow
@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_structure_is_right_on_every_odd_shape_and_stride(problem, interpret):
    jobs = jobs_on(problem, instances(problem, n_random=1), ODD[problem])

    assert_right(jobs, interpret(jobs))


#: The matrix products take a minute to compile, and a second shape as long as the first: with the slow tests.
COMPILED = [
    pytest.param(problem, which, marks=[] if problem in PROBLEMS[:3] and which == "timed" else [pytest.mark.slow])
    for problem in PROBLEMS
    for which in ("timed", "hidden")
]


@pytest.mark.parametrize(("problem", "which"), COMPILED)
def test_every_default_compiles_for_an_a100_without_spills(problem, which, compile_for):
    spec = load_problem(problem).spec
    shape = spec.shapes_of(ShapeRole.TUNE)[-1] if which == "timed" else spec.shapes_of(ShapeRole.HIDDEN)[2]
    jobs = [
        {"label": label, "source": source, "problem": problem, "dims": shape.as_dict(), "dtype": spec.dtype_of(shape)}
        for label, source in instances(problem, n_random=0)
    ]

    rows = compile_for(80, jobs)

    for job, row in zip(jobs, rows, strict=True):
        assert row.get("kernels"), (job["label"], job["dims"], row)
        for kernel in row["kernels"]:
            assert kernel["spill_bytes"] == 0, (job["label"], job["dims"], kernel["name"])
            assert kernel["shared_bytes"] <= A100.shared_per_block


@pytest.mark.gpu
@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_structure_is_right_on_every_shape_of_a_gpu(problem, run_on_gpu):
    shapes = [(s.as_dict(), layout) for s in load_problem(problem).spec.shapes for layout in ("contiguous", "sliced")]
    jobs = jobs_on(problem, instances(problem, n_random=0), shapes)

    assert_right(jobs, run_on_gpu(jobs))


def test_a_row_of_minus_infinity_is_nan_as_torch_has_it(interpret):
    jobs = jobs_on("softmax", instances("softmax", n_random=0), [({"rows": 2, "cols": 300}, "infinite")])

    rows = interpret(jobs)

    assert [(j["label"], r) for j, r in zip(jobs, rows, strict=True) if not r.get("same_nans")] == []


@pytest.mark.parametrize("rows", [2, 4])
def test_rows_that_share_the_vector_are_right_where_shares_cut_them_and_past_the_last(rows, interpret):
    spec = load_problem("mat_vec").spec
    entry = next(e for e in load_entries("mat_vec") if e.name == "matvec_persistent")
    source = entry.instantiate(entry.defaults() | {"ROWS": rows, "TILE": 1024, "PROGRAMS_PER_SM": 1}, A100, spec)
    odd = [({"rows": 13, "cols": 65537}, "contiguous"), ({"rows": 7, "cols": 1021}, "sliced")]

    assert_right(jobs := jobs_on("mat_vec", [(f"{rows} rows", source)], odd), interpret(jobs))


def test_attention_is_causal_where_the_problem_says_so(interpret):
    spec = replace(load_problem("sdp_attn").spec, params=(("causal", "true"),))
    causal = str(Path(__file__).parents[1] / "data" / "kernels" / "problems" / "causal_attention")
    entries = load_entries("attention")
    jobs = [
        {"label": e.name, "source": e.instantiate(e.defaults() | small, A100, spec),
         "problem": causal, "dims": {"seq": 70, "head_dim": 16}, "layout": "contiguous", "dtype": "float16"}
        for e in entries
        for small in ({}, {name: 16 for name, values in e.grid if name in ("BLOCK_M", "BLOCK_N") and 16 in values})
    ]  # fmt: skip

    assert_right(jobs, interpret(jobs))


def test_tensor_descriptors_are_used_where_the_chip_has_them(interpret):
    spec = load_problem("linear_relu_div").spec
    entry = next(e for e in load_entries("linear_relu_div") if e.name == "linear_tensor_descriptor")
    source = entry.instantiate(entry.defaults(), DATA_SHEETS["h200"], spec)
    dims = [{"batch": 33, "n_in": 64, "n_out": 32}, {"batch": 7, "n_in": 67, "n_out": 61}]

    assert_right(
        jobs := jobs_on("linear_relu_div", [("h200", source)], [(d, "contiguous") for d in dims]), interpret(jobs)
    )


@pytest.mark.slow
@pytest.mark.parametrize("problem", PROBLEMS)
def test_many_points_of_the_grid_are_right_on_all_hidden_shapes(problem, interpret):
    hidden = [s.as_dict() for s in load_problem(problem).spec.shapes_of(ShapeRole.HIDDEN)]
    odd = [(dims, "contiguous") for dims in hidden if math.prod(dims.values()) < 1 << 20]
    jobs = jobs_on(problem, instances(problem, n_random=4, seed=1), odd)

    assert_right(jobs, interpret(jobs))


@pytest.mark.slow
@pytest.mark.parametrize("problem", PROBLEMS)
def test_many_points_of_the_grid_compile_on_every_shape(problem, compile_for):
    spec = load_problem(problem).spec
    shapes = [s for s in spec.shapes if s.role is not ShapeRole.PROXY]
    jobs = [
        {"label": label, "source": source, "problem": problem, "dims": shape.as_dict(), "dtype": spec.dtype_of(shape)}
        for label, source in instances(problem, n_random=4, seed=2)
        for shape in shapes
    ]

    failed = [(j["label"], r["failed"]) for j, r in zip(jobs, compile_for(90, jobs), strict=True) if "failed" in r]

    assert not failed
