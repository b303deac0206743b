"""Playbook kernels are right on odd shapes and strides in the interpreter, and fit an A100 without spills."""

import math
import random
from typing import Any

import pytest

from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.problem import ShapeRole
from kbtui.generation.playbook import load_entries
from kbtui.problems import load_problem

Job = dict[str, Any]
A100 = DATA_SHEETS["a100"]
PROBLEMS = ("softmax", "rms_norm", "mat_vec")
LIMIT = 1e-6
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
}


def instances(problem: str, n_random: int, seed: int = 0) -> list[tuple[str, str]]:
    """(label, source) of every entry's default and of some points of its grid."""
    spec = load_problem(problem).spec
    rng = random.Random(seed)
    found = []
    for entry in load_entries(spec.family):
        points = [entry.defaults()]
        points += [{name: rng.choice(values) for name, values in entry.grid} for _ in range(n_random)]
        found += [(f"{entry.name} {p}", entry.instantiate(p, A100, spec)) for p in points]
    return found


def jobs_on(
    problem: str, sources: list[tuple[str, str]], odd: list[tuple[dict[str, int], str]]
) -> list[dict[str, Any]]:
    return [
        {"label": label, "source": source, "problem": problem, "dims": dims, "layout": layout}
        for label, source in sources
        for dims, layout in odd
    ]


def assert_right(jobs: list[Job], rows: list[dict[str, Any]]) -> None:
    wrong = [
        (job["label"], job["dims"], job["layout"], row)
        for job, row in zip(jobs, rows, strict=True)
        if "failed" in row or row["error"] > LIMIT or not row["shape_ok"]
    ]
    assert not wrong


@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_structure_is_right_on_odd_shapes_and_strides(problem, interpret):
    points = instances(problem, n_random=2)
    n_defaults = len(load_entries(load_problem(problem).spec.family))
    jobs = jobs_on(problem, points[::3], ODD[problem])
    jobs += jobs_on(problem, [p for i, p in enumerate(points) if i % 3], ODD[problem][:1])
    assert len(points) == 3 * n_defaults

    assert_right(jobs, interpret(jobs))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_default_compiles_for_an_a100_without_spills(problem, compile_for):
    spec = load_problem(problem).spec
    shapes = [spec.shapes_of(ShapeRole.TUNE)[-1], spec.shapes_of(ShapeRole.HIDDEN)[2]]
    jobs = [
        {"label": label, "source": source, "problem": problem, "dims": shape.as_dict()}
        for label, source in instances(problem, n_random=0)
        for shape in shapes
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
    shapes = [s for s in load_problem(problem).spec.shapes if s.role is not ShapeRole.PROXY]
    jobs = [
        {"label": label, "source": source, "problem": problem, "dims": shape.as_dict()}
        for label, source in instances(problem, n_random=4, seed=2)
        for shape in shapes
    ]

    failed = [(j["label"], r["failed"]) for j, r in zip(jobs, compile_for(90, jobs), strict=True) if "failed" in r]

    assert not failed
