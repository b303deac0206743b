"""Whatever a declaration holds, it is a problem or one line that says what is wrong."""

import contextlib
import copy
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbtui.domain.problem import evaluate_formula
from kbtui.errors import UsageError
from kbtui.problems import load_problem, parse_spec

SOUND = {
    "name": "p", "dtype": "float32", "bytes": "n * itemsize", "flops": "n", "summary": "s", "family": "f",
    "distributions": ["normal"], "target_speedup": 1.5, "allowed_ops": [], "params": {"a": 1},
    "tolerance": {"floor": 1e-6, "element": 200.0},
    "tune": [{"dims": {"n": 8}, "from_rung": 1}],
    "hidden": [{"dims": {"n": 7}}],
    "proxy": [{"dims": {"n": 4}, "dtype": "float16"}],
}  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=12), st.sampled_from(["n", "-n", "n**n**n"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["dims", "n", "name", "from_rung", "dtype", "floor", ""]), inner, max_size=3),
    ),
    max_leaves=6,
)


def answered(plain: dict) -> str | None:
    """None for a problem whose formulas are numbers, else the line that says what is wrong."""
    try:
        spec = parse_spec(plain, "problem.toml")
    except UsageError as error:
        line = str(error)
    else:
        assert all(math.isfinite(spec.bytes_moved(shape)) and spec.flops(shape) >= 0 for shape in spec.shapes)
        assert spec.timed_at(1)
        return None
    assert line.startswith("problem.toml")
    assert "\n" not in line
    return line


def test_the_declaration_that_is_changed_is_a_problem():
    assert answered(SOUND) is None


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(SOUND)), VALUES)
def test_any_value_of_any_key_is_answered(key, value):
    answered({**SOUND, key: value})


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["tune", "hidden", "proxy"]), st.sampled_from(["dims", "from_rung", "dtype", "name"]), VALUES)
def test_any_value_in_a_shape_is_answered(role, key, value):
    changed = copy.deepcopy(SOUND)
    changed[role][0][key] = value
    answered(changed)


@given(st.sampled_from(sorted(SOUND)), st.text(min_size=1, max_size=10))
def test_an_unknown_key_is_named(key, other):
    renamed = {other if k == key else k: v for k, v in SOUND.items()}
    if other not in SOUND and other != "kernelbench":
        assert f"unknown key {other!r}" in (answered(renamed) or "")


@pytest.mark.parametrize("key", sorted(set(SOUND) - {"a"}))
def test_a_key_with_a_letter_missing_is_answered_with_the_right_one(key):
    if len(key) > 3:
        renamed = {key[:-2] + key[-1] if k == key else k: v for k, v in SOUND.items()}
        assert f"did you mean {key!r}?" in (answered(renamed) or "")


@settings(max_examples=300)
@given(st.text(alphabet="n0123456789+-*/(). ", max_size=30))
def test_a_formula_is_a_number_or_an_error_that_is_caught(formula):
    with contextlib.suppress(ValueError, ZeroDivisionError, OverflowError):
        assert math.isfinite(evaluate_formula(formula, {"n": 8.0}))


def test_a_formula_that_is_nested_too_deeply_is_refused():
    with pytest.raises(ValueError, match=r"nested too deeply|not an expression"):
        evaluate_formula("(" * 5000 + "n" + ")" * 5000, {"n": 1.0})
    with pytest.raises(ValueError, match="nested too deeply"):
        evaluate_formula("-" * 50_000 + "n", {"n": 1.0})


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("tolerance", {"floor": 0.0}, "[tolerance]: floor is 0; it is a relative error between 0 and 1"),
        ("tolerance", {"floor": 2}, "floor is 2"),
        ("tolerance", {"element": -1.0}, "element is -1"),
        ("tolerance", {"flour": 1.0}, "unknown key 'flour'; did you mean 'floor'?"),
        ("tune", [], "no [[tune]] shape"),
        ("tune", [{"dims": {"n": 8}, "from_rung": 9}], "from_rung is 9; rungs that time are 1 to 4"),
        ("hidden", [{"dims": {"n": 8}}], "two shapes named 8"),
        ("dtype", "fp32", "dtype 'fp32' is not supported; use one of float32"),
        ("flops", "(-n) ** 0.5", "bad flops formula: formula '(-n) ** 0.5' gives"),
        ("bytes", "1e400", "bad bytes formula"),
    ],
)
def test_a_mistake_is_named_with_what_to_do(key, value, says):
    assert says in (answered({**SOUND, key: value}) or "")


@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=80))
def test_any_text_as_problem_toml_is_answered(text, tmp_path_factory):
    folder = tmp_path_factory.mktemp("problem")
    (folder / "problem.toml").write_text(text, encoding="utf-8", errors="replace")
    with pytest.raises(UsageError):
        load_problem(str(folder))


def test_a_folder_may_declare_inputs_for_a_kernelbench_file(tmp_path):
    (tmp_path / "problem.toml").write_text(
        'name = "p"\ndtype = "float32"\nkernelbench = "m.py"\nbytes = "n"\nflops = "0"\n[[tune]]\ndims = { n = 8 }\n'
    )
    with pytest.raises(UsageError, match=r"cannot read .*m\.py"):
        load_problem(str(tmp_path))
    (tmp_path / "m.py").write_text("x = 1\n")
    with pytest.raises(UsageError, match="is not in KernelBench's format"):
        load_problem(str(tmp_path))
    (tmp_path / "m.py").write_text(
        "class Model: pass\ndef get_inputs(): return []\ndef get_init_inputs(): return []\nn = 8\n"
    )
    assert load_problem(str(tmp_path)).format == "kernelbench"
