import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kbtui.domain.problem import ShapeRole
from kbtui.problems import load_problem, sample_names

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
#: The largest input of a hidden shape that the interpreter is asked to run here, and in the long campaign.
MAX_ELEMENTS, MANY_ELEMENTS = 1_500, 4_000
SHARED_BYTES = {80: 163 * 1024, 90: 227 * 1024}


Rows = dict[str, list[dict]]


def ask(script: str, *args: str, interpret: bool, cache: Path, timeout_s: float = 300) -> Rows:
    """A child's rows by sample; one child takes many, for it is its start that costs."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "1"}
    env["TRITON_INTERPRET"] = "1" if interpret else "0"
    child = subprocess.run(
        [sys.executable, str(HERE / script), *args], capture_output=True, text=True, timeout=timeout_s, env=env
    )
    assert child.returncode == 0, child.stderr[-2000:]
    return json.loads(child.stdout)


def run_interpreted(max_elements: int, cache: Path) -> Rows:
    return ask("interpreter_check.py", "cpu", str(max_elements), *sample_names(), interpret=True, cache=cache)


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory) -> Rows:
    return run_interpreted(MAX_ELEMENTS, tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="module")
def compiled_for_a100(tmp_path_factory) -> Rows:
    return ask("compile_check.py", "80", *sample_names(), interpret=False, cache=tmp_path_factory.mktemp("cache"))


def assert_correct(name: str, rows: list[dict]) -> None:
    spec = load_problem(name).spec
    assert {row["distribution"] for row in rows} == set(spec.distributions)
    for row in rows:
        where = (row["shape"], row["distribution"])
        assert row["error"] <= row["limit"], (where, row["error"], row["limit"])
        assert row["same_kind"], where
        assert row["inputs_kept"], where


@pytest.mark.parametrize("name", sample_names())
def test_first_kernel_is_right_in_the_interpreter(name, interpreted):
    assert_correct(name, interpreted[name])
    proxies = {s.name for s in load_problem(name).spec.shapes_of(ShapeRole.PROXY)}
    assert proxies < {row["shape"] for row in interpreted[name]}, "proxies and at least one hidden shape were run"


@pytest.mark.slow
def test_first_kernels_are_right_in_the_interpreter_on_larger_shapes(tmp_path, interpreted):
    found = run_interpreted(MANY_ELEMENTS, tmp_path)
    assert sum(map(len, found.values())) > sum(map(len, interpreted.values()))
    for name, rows in found.items():
        assert_correct(name, rows)


@pytest.mark.gpu
@pytest.mark.parametrize("name", sample_names())
def test_first_kernel_is_right_on_the_gpu_on_every_shape(name, tmp_path):
    rows = ask("interpreter_check.py", "cuda", str(1 << 40), name, interpret=False, cache=tmp_path)[name]
    assert_correct(name, rows)
    assert {row["shape"] for row in rows} == {s.name for s in load_problem(name).spec.shapes}


def assert_fits(name: str, arch: int, rows: list[dict]) -> None:
    assert {row["shape"] for row in rows} == {s.name for s in load_problem(name).spec.shapes_of(ShapeRole.TUNE)}
    assert max(row["shared_bytes"] for row in rows) <= SHARED_BYTES[arch]
    assert [row for row in rows if row["spill_bytes"]] == []


@pytest.mark.parametrize("name", sample_names())
def test_first_kernel_compiles_for_an_a100_without_spills_on_timed_shapes(name, compiled_for_a100):
    assert_fits(name, 80, compiled_for_a100[name])


@pytest.mark.parametrize(
    "names", [("mat_vec",), pytest.param(tuple(sample_names()), marks=pytest.mark.slow)], ids=["one", "all"]
)
def test_first_kernels_compile_for_a_hopper_without_spills_on_timed_shapes(names, tmp_path):
    for name, rows in ask("compile_check.py", "90", *names, interpret=False, cache=tmp_path).items():
        assert_fits(name, 90, rows)
