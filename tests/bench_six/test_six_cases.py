"""The cases: each a problem that kbtui takes, timing one shape in one dtype and gating what the sample gates."""

from pathlib import Path

import pytest

from benchmarks.six.cases import Case, chosen, in_turns, load_cases, write_problem
from kbtui.domain.problem import ShapeRole
from kbtui.errors import UsageError
from kbtui.problems import load_problem, sample_names

CASES = load_cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_is_its_sample_on_one_shape_in_one_dtype(case: Case, tmp_path: Path) -> None:
    problem, sample = load_problem(str(write_problem(case, tmp_path))), load_problem(case.problem)
    spec = problem.spec
    (timed,) = spec.shapes_of(ShapeRole.TUNE)
    assert (timed.name, spec.timed_at(1)) == (case.shape, (timed,))
    assert {spec.dtype_of(shape) for shape in spec.shapes} == {case.dtype}
    assert {s.dims for s in spec.shapes_of(ShapeRole.HIDDEN)} == {
        s.dims for s in sample.spec.shapes_of(ShapeRole.HIDDEN)
    }
    assert (problem.reference_source, problem.kernel_source) == (sample.reference_source, sample.kernel_source)
    assert (spec.name, spec.family, spec.params) == (sample.spec.name, sample.spec.family, sample.spec.params)
    itemsize = {"float32": 4, "float16": 2}[case.dtype]
    assert spec.bytes_moved(timed) >= itemsize


def test_every_sample_has_cases_and_no_two_have_one_name() -> None:
    assert {case.problem for case in CASES} == set(sample_names())
    assert len({case.name for case in CASES}) == len(CASES) == 20


def test_a_call_that_ends_early_has_seen_every_problem() -> None:
    turns = in_turns(CASES)
    assert sorted(c.name for c in turns) == sorted(c.name for c in CASES)
    assert len({case.problem for case in turns[:6]}) == 6


def test_cases_are_chosen_by_the_beginning_of_their_names() -> None:
    assert chosen(CASES, ()) == CASES
    assert {c.problem for c in chosen(CASES, ("softmax", "mat_vec-256"))} == {"softmax", "mat_vec"}
    assert len(chosen(CASES, ("mat_vec-256",))) == 1
    with pytest.raises(UsageError, match="no case begins with 'sofmax'"):
        chosen(CASES, ("softmax", "sofmax"))


def test_a_shape_that_the_sample_lacks_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="softmax has no shape 1x1"):
        write_problem(Case("softmax", "float32", "1x1", 1.0, 1.0), tmp_path)


def test_a_problem_that_is_there_is_not_written_again(tmp_path: Path) -> None:
    folder = write_problem(CASES[0], tmp_path)
    before = {p.name: p.stat().st_mtime_ns for p in folder.iterdir()}
    write_problem(CASES[0], tmp_path)
    assert {p.name: p.stat().st_mtime_ns for p in folder.iterdir()} == before
