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
#: The largest input of a hidden shape that the interpreter is asked to run here.
MAX_ELEMENTS = 4_000
SHARED_BYTES = {80: 163 * 1024, 90: 227 * 1024}


def ask(script: str, *args: str, interpret: bool, cache: Path, timeout_s: float = 300) -> list[dict]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "1"}
    env["TRITON_INTERPRET"] = "1" if interpret else "0"
    child = subprocess.run(
        [sys.executable, str(HERE / script), *args], capture_output=True, text=True, timeout=timeout_s, env=env
    )
    assert child.returncode == 0, child.stderr[-2000:]
    return json.loads(child.stdout)


def assert_correct(name: str, rows: list[dict]) -> None:
    spec = load_problem(name).spec
    assert {row["distribution"] for row in rows} == set(spec.distributions)
    for row in rows:
        where = (row["shape"], row["distribution"])
        assert row["error"] <= row["limit"], (where, row["error"], row["limit"])
        assert row["same_kind"], where
        assert row["inputs_kept"], where


@pytest.mark.parametrize("name", sample_names())
def test_first_kernel_is_right_in_the_interpreter(name, tmp_path):
    rows = ask("interpreter_check.py", name, "cpu", str(MAX_ELEMENTS), interpret=True, cache=tmp_path)
    assert_correct(name, rows)
    proxies = {s.name for s in load_problem(name).spec.shapes_of(ShapeRole.PROXY)}
    assert proxies < {row["shape"] for row in rows}, "proxies and at least one hidden shape were run"


@pytest.mark.gpu
@pytest.mark.parametrize("name", sample_names())
def test_first_kernel_is_right_on_the_gpu_on_every_shape(name, tmp_path):
    rows = ask("interpreter_check.py", name, "cuda", str(1 << 40), interpret=False, cache=tmp_path)
    assert_correct(name, rows)
    assert {row["shape"] for row in rows} == {s.name for s in load_problem(name).spec.shapes}


@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("name", sample_names())
def test_first_kernel_compiles_for_the_chip_without_spills_on_timed_shapes(name, arch, tmp_path):
    rows = ask("compile_check.py", name, str(arch), interpret=False, cache=tmp_path)
    assert {row["shape"] for row in rows} == {s.name for s in load_problem(name).spec.shapes_of(ShapeRole.TUNE)}
    assert max(row["shared_bytes"] for row in rows) <= SHARED_BYTES[arch]
    assert [row for row in rows if row["spill_bytes"]] == []
