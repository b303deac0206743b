import shutil
from pathlib import Path

import pytest

from kbtui.domain.problem import ProblemFormat, ShapeRole
from kbtui.errors import ExitCode, UsageError
from kbtui.problems import load_problem, parse_spec, sample_names

MINIMAL = """
name = "scale"
dtype = "float16"
bytes = "2 * n * itemsize"
flops = "n"
[[tune]]
dims = { n = 1024 }
from_rung = 1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "problem.toml").write_text(MINIMAL)
    (tmp_path / "reference.py").write_text("def reference(x): return 2 * x\n")
    return tmp_path


def complaint(path: Path | str) -> str:
    with pytest.raises(UsageError) as caught:
        load_problem(str(path))
    assert caught.value.exit_code == ExitCode.USAGE
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", sample_names())
def test_a_sample_loads_by_its_bare_name_and_by_its_path(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    by_name = load_problem(name)
    assert by_name == load_problem(f"sample_kernels/{name}") == load_problem(by_name.path)
    assert by_name.spec.name == name
    assert "def kernel_function(" in by_name.kernel_source
    assert "def make_inputs(" in by_name.reference_source


def test_a_declaration_may_be_named_itself(folder):
    assert load_problem(str(folder / "problem.toml")) == load_problem(str(folder))


def test_a_folder_on_the_way_beats_a_sample_of_the_same_name(folder, tmp_path, monkeypatch):
    shutil.copytree(folder, tmp_path / "here" / "softmax")
    monkeypatch.chdir(tmp_path / "here")
    assert load_problem("softmax").spec.name == "scale"


def test_defaults_fill_what_a_minimal_problem_leaves_out(folder):
    problem = load_problem(str(folder))
    spec = problem.spec
    assert (problem.format, problem.kernel_source) == (ProblemFormat.FOLDER, None)
    assert spec.tolerance.floor == 1e-3
    assert len(spec.distributions) == 6
    assert spec.shapes[0].name == "1024"
    assert (spec.family, spec.target_speedup, spec.allowed_ops) == (None, None, ())


def test_a_name_that_is_nearly_a_sample_is_answered_with_the_sample():
    assert complaint("sofmax") == "no such problem: sofmax; did you mean softmax?"
    assert "did you mean rms_norm?" in complaint("problems/rmsnorm")


def test_a_name_that_is_like_nothing_is_answered_with_the_list():
    assert complaint("zzz").endswith("the samples are " + ", ".join(sample_names()))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('name = "scale"\n', "", "lacks the key 'name'"),
        ('bytes = "2 * n * itemsize"\n', "", "lacks the key 'bytes'; add bytes ="),
        ("2 * n * itemsize", "2 * m * itemsize", "bad bytes formula: unknown name 'm'"),
        ("2 * n * itemsize", "2 *", "bad bytes formula"),
        ("2 * n * itemsize", "__import__(1)", "may hold only numbers"),
        ("2 * n * itemsize", "n / 0", "bad bytes formula"),
        ('"n"', '"0 - n"', "bad flops formula: it is negative"),
        ("float16", "fp16", "dtype 'fp16' is not supported; use one of float32"),
        ("name =", "nmae =", "unknown key 'nmae'; did you mean 'name'?"),
        ("from_rung = 1", "from_rung = 2", "no [[tune]] shape with from_rung = 1"),
        ("from_rung = 1", "from_rugn = 1", "[[tune]] 1 has an unknown key 'from_rugn'"),
        ("n = 1024", "n = 0", "must be sizes of 1 and more"),
        ("n = 1024", "n = true", "dims: n is True; it must be a whole number"),
        ('name = "scale"', "name = 3", "name is 3; it must be text"),
        ("dims = { n = 1024 }", "", "[[tune]] 1 lacks the key 'dims'"),
        ('name = "scale"', 'name = "scale', "is not TOML"),
    ],
)
def test_a_mistake_in_the_declaration_is_one_line_that_names_it(folder, old, new, says):
    assert old in MINIMAL
    (folder / "problem.toml").write_text(MINIMAL.replace(old, new))
    said = complaint(folder)
    assert says in said
    assert "problem.toml" in said


def test_toml_that_does_not_parse_is_named_with_its_line(folder):
    (folder / "problem.toml").write_text('name = "a"\ndtype = = 3\n')
    assert "at line 2" in complaint(folder)


def test_a_folder_without_its_parts_says_which_is_missing(folder, tmp_path):
    (folder / "reference.py").unlink()
    assert "has no reference.py" in complaint(folder)
    (folder / "problem.toml").unlink()
    assert "has no problem.toml" in complaint(folder)


def test_a_python_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "x.py").write_text("x = 1\n")
    assert "is not a problem" in complaint(tmp_path / "x.py")
    (tmp_path / "y.py").write_text("def (:\n")
    assert "is not a problem" in complaint(tmp_path / "y.py")
    (tmp_path / "z.py").write_bytes(b"\xff\xfe\x00")
    assert "cannot read" in complaint(tmp_path / "z.py")


def test_shape_level_dtype_and_role_reach_the_spec():
    plain = {
        "name": "p", "dtype": "float32", "bytes": "n * itemsize", "flops": "n",
        "tune": [{"dims": {"n": 8}}, {"dims": {"n": 8}, "dtype": "float16", "from_rung": 2}],
        "hidden": [{"dims": {"n": 7}, "name": "seven"}],
    }  # fmt: skip
    spec = parse_spec(plain, "here")
    assert [s.name for s in spec.shapes] == ["8", "8 float16", "seven"]
    assert [spec.bytes_moved(s) for s in spec.shapes] == [32, 16, 28]
    assert [s.name for s in spec.timed_at(1)] == ["8"]
    assert spec.shapes_of(ShapeRole.HIDDEN)[0].name == "seven"
