import ast
import runpy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.domain.kernelbench import GIVEN, is_kernelbench, kernelbench_spec, with_sizes
from kbtui.domain.problem import ProblemFormat, ShapeRole
from kbtui.problems import load_problem

FILES = Path(__file__).parents[1] / "data" / "kernelbench"


@pytest.mark.parametrize(
    ("file", "sizes", "n_bytes"),
    [
        ("row_softmax", {"batch_size": 512, "n_scores": 8192}, 4 * 512 * 8192),
        ("tall_matvec", {"M": 512, "K": 16384}, 4 * (512 * 16384 + 16384)),
        ("scaled_linear", {"batch_size": 128, "in_features": 1024, "out_features": 512}, 4 * 128 * 1024),
    ],
)
def test_sizes_and_input_bytes_are_read_off_the_file(file, sizes, n_bytes):
    problem = load_problem(str(FILES / f"{file}.py"))
    (shape,) = problem.spec.timed_at(1)
    assert (problem.format, problem.kernel_source) == (ProblemFormat.KERNELBENCH, None)
    assert shape.as_dict() == sizes
    assert problem.spec.bytes_moved(shape) == n_bytes
    assert problem.spec.distributions == (GIVEN,)
    assert problem.spec.summary


def test_hidden_shapes_leave_the_sizes_a_model_is_built_from():
    spec = load_problem(str(FILES / "scaled_linear.py")).spec
    for shape in spec.shapes_of(ShapeRole.HIDDEN):
        assert shape.as_dict()["in_features"] == 1024
        assert shape.as_dict()["batch_size"] in (61, 129)


def test_every_shape_of_a_file_runs_with_its_sizes_put_in(tmp_path):
    for file in FILES.glob("*.py"):
        problem = load_problem(str(file))
        for shape in problem.spec.shapes_of(ShapeRole.PROXY):
            other = tmp_path / file.name
            other.write_text(with_sizes(problem.reference_source, shape.as_dict()))
            module = runpy.run_path(str(other))
            out = module["Model"](*module["get_init_inputs"]())(*module["get_inputs"]())
            assert out.shape[0] == next(iter(shape.as_dict().values()))


@given(st.integers(1, 1 << 40), st.integers(1, 1 << 40))
def test_sizes_put_in_are_the_sizes_read_off(m, k):
    source = (FILES / "tall_matvec.py").read_text()
    spec = kernelbench_spec("x", with_sizes(source, {"M": m, "K": k}))
    assert spec.timed_at(1)[0].as_dict() == {"M": m, "K": k}


def test_sizes_put_in_leave_every_other_line_as_it_was():
    source = (FILES / "scaled_linear.py").read_text()
    changed = with_sizes(source, {"batch_size": 3})
    assert [(a, b) for a, b in zip(source.splitlines(), changed.splitlines(), strict=True) if a != b] == [
        ("batch_size = 128", "batch_size = 3")
    ]


def test_a_constant_over_several_lines_is_replaced_whole():
    changed = with_sizes("n = (\n    4 *\n    8\n)\nm = 2\n", {"n": 5})
    names = {}
    exec(compile(ast.parse(changed), "x", "exec"), names)
    assert (names["n"], names["m"]) == (5, 2)


def test_a_file_that_names_no_sizes_has_its_one_shape():
    source = (
        "import torch\nclass Model(torch.nn.Module):\n    pass\n"
        "def get_inputs():\n    return [torch.rand(4, 8)]\ndef get_init_inputs():\n    return []\n"
    )
    spec = kernelbench_spec("literal", source)
    assert [(s.name, s.role) for s in spec.shapes] == [("as given", ShapeRole.TUNE)]
    assert spec.bytes_moved(spec.shapes[0]) == 128


@given(st.text())
def test_any_text_is_answered(source):
    assert is_kernelbench(source) in (True, False)
