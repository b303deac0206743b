"""An exported folder, checked by its own script in a Python that has torch and triton and no kbtui."""

import ast
import csv
import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from kbtui.commands.leave import export
from kbtui.errors import UsageError
from kbtui.leaving.folder import Left, folder_files
from kbtui.leaving.header import licence_lines, with_header
from kbtui.leaving.problem_files import find_problem, read_problem_files
from kbtui.leaving.rows import csv_text
from kbtui.problems import load_problem
from kbtui.result import run_result
from kbtui.scheduler.state import RunState
from store.workspace import Workspace

SITE_PACKAGES = Path(torch.__file__).parents[1]
KERNELBENCH = Path(__file__).parents[1] / "data/kernelbench/scaled_linear.py"
#: Isolated, without site: of the environment only the folder with torch and triton, no .pth file that adds kbtui.
ALONE = f"""
import sys, runpy, importlib.util
sys.path.append({str(SITE_PACKAGES)!r})
for name in ("kbtui", "store", "hints", "sample_kernels"):
    assert importlib.util.find_spec(name) is None, name
script, sys.argv = sys.argv[1], sys.argv[1:]
runpy.run_path(script, run_name="__main__")
"""
SCALED_LINEAR = """
import torch, triton, triton.language as tl

@triton.jit
def scaled_linear(x, w, b, out, K, N, SCALE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    m, n = tl.program_id(0), tl.arange(0, ROWS)
    total = tl.load(b + n, mask=n < N, other=0.0)
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        row = tl.load(x + m * K + k, mask=k < K, other=0.0)
        inside = (n[:, None] < N) & (k[None, :] < K)
        total += tl.sum(tl.load(w + n[:, None] * K + k[None, :], mask=inside, other=0.0) * row[None, :], axis=1)
    tl.store(out + m * N + n, tl.maximum(total * SCALE, 0.0), mask=n < N)

def kernel_function(x, weight, bias):
    m, n = x.shape[0], weight.shape[0]
    out = torch.empty((m, n), dtype=x.dtype, device=x.device)
    scaled_linear[(m,)](x, weight, bias, out, x.shape[1], n, SCALE=0.5, ROWS=triton.next_power_of_2(n), BLOCK=256)
    return out
"""


def start_check(folder: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-I", "-S", "-c", ALONE, str(folder / "check.py"), "--interpreter", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/", env={})


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=600)
    return process.returncode, out, err


def write(folder: Path, texts: dict[str, str]) -> Path:
    for relative, text in texts.items():
        (folder / relative).parent.mkdir(parents=True, exist_ok=True)
        (folder / relative).write_text(text)
    return folder


def test_the_folder_checks_itself_without_kbtui_and_fails_a_kernel_that_was_tampered_with(
    model_run: Workspace, tmp_path: Path
):
    good, bad = tmp_path / "good", tmp_path / "bad"
    for folder in (good, bad):
        assert export(model_run.root, None, folder, None) == 0
    kernel = (bad / "kernel.py").read_text()
    tampered = kernel.replace("return out", "out[..., -1:] *= 1.001\n    return out")
    assert tampered != kernel
    (bad / "kernel.py").write_text(tampered)
    checks = [start_check(good), start_check(bad, "--no-time", "--json")]
    (code, said, error), (bad_code, bad_said, _) = [finish(check) for check in checks]
    assert code == 0, said + error
    assert "PASSED" in said
    assert "not as it was exported" not in said
    assert "they say nothing about a GPU" in said
    told = json.loads(bad_said)
    assert bad_code == 1
    assert told["edited"]
    assert any("relative L2 error" in (c["fault"] or "") for c in told["checks"])


def test_a_folder_of_a_model_run_names_its_proof_and_clock_and_holds_every_artifact(
    model_run: Workspace, tmp_path: Path
):
    export(model_run.root, None, tmp_path / "out", None)
    header = (tmp_path / "out/kernel.py").read_text().partition('"""')[0]
    assert "under Triton's interpreter" in header
    assert "modelled" in header
    index = json.loads((tmp_path / "out/artifacts/index.json").read_text())
    assert {a["sha256"] for a in index} == {p.name for p in (tmp_path / "out/artifacts").iterdir()} - {"index.json"}
    assert all(a["n_bytes"] is not None for a in index)
    assert json.loads((tmp_path / "out/result.json").read_text())["verified"]["proof"] == "interpreter"


def test_a_file_in_kernelbenchs_format_is_checked_with_its_state(h200_left: Left, tmp_path: Path):
    problem = load_problem(str(KERNELBENCH))
    left = replace(h200_left, best_source=SCALED_LINEAR, problem=read_problem_files(problem), artifacts=())
    right = write(tmp_path / "right", folder_files(left))
    wrong = write(tmp_path / "wrong", folder_files(replace(left, best_source=SCALED_LINEAR.replace("=0.5", "=0.25"))))
    checks = [start_check(folder, "--no-time") for folder in (right, wrong)]
    (code, said, error), (wrong_code, wrong_said, _) = [finish(check) for check in checks]
    assert code == 0, said + error
    assert wrong_code == 1, wrong_said


def test_the_header_says_where_the_kernel_comes_from_and_changes_nothing_in_it(h200_left: Left):
    text = folder_files(h200_left)["kernel.py"]
    header = text[: text.index(h200_left.best_source)]
    assert all(line.startswith("#") for line in header.splitlines() if line)
    for fact in ("softmax-1", "c0032", h200_left.best.commit, "36 checks", "1.1e-07", "gpu", "measured", "NVIDIA H200"):
        assert fact in header
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(h200_left.best_source))


def test_a_licence_that_the_first_kernel_names_stays_on_the_kernel_made_from_it(h200_left: Left):
    first = "# SPDX-License-Identifier: MIT\n# Copyright 2026 Ada\nimport torch\n# Copyright of nobody\n"
    assert licence_lines("import torch\n", first) == ["SPDX-License-Identifier: MIT", "Copyright 2026 Ada"]
    args = (h200_left.best, h200_left.state, run_result(h200_left.state), first, "2026")
    assert with_header("import torch\n", *args).startswith("# SPDX-License-Identifier: MIT\n")


def test_text_of_others_cannot_leave_the_headers_comment(h200_left: Left):
    candidate = replace(h200_left.best.candidate, summary="fast\nimport os\r\u2028os.abort()", notes=("x\x0cy = 1",))
    tried = replace(h200_left.best, candidate=candidate)
    text = with_header("z = 1\n", tried, h200_left.state, run_result(h200_left.state), "", "2026")
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse("z = 1\n"))


def test_results_have_one_row_a_candidate_and_rung_in_both_formats(h200_left: Left):
    files = folder_files(h200_left)
    rows = list(csv.DictReader(io.StringIO(files["results.csv"], newline="")))
    plain = json.loads(files["results.json"])
    completed = {(t.candidate.id, rung) for t in h200_left.state.tried.values() for rung in t.results}
    assert {(r["candidate"], int(r["rung"])) for r in rows} == completed
    assert [float(r["over_first_ratio"]) for r in rows if r["over_first_ratio"]] == [
        p["over_first_ratio"] for p in plain if p["over_first_ratio"] is not None
    ]
    crowned = next(p for p in plain if p["decision"] == "crown")
    assert (crowned["candidate"], round(crowned["4096x16384 us"])) == ("c0032", 128)
    assert len(files["events.jsonl"].splitlines()) == len(h200_left.envelopes)


@pytest.mark.parametrize("text", ["=1+1", "+CMD|x", "-2", "@SUM(A1)"])
def test_a_cell_that_a_spreadsheet_would_compute_is_text(text: str):
    assert list(csv.reader(io.StringIO(csv_text([{"a": text}]), newline="")))[1] == [f"'{text}"]


def test_artifacts_this_machine_lacks_are_listed(h200: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    export(h200.root, "softmax-1", tmp_path / "out", None)
    said = capsys.readouterr().err
    index = json.loads((tmp_path / "out/artifacts/index.json").read_text())
    assert len(index) == 75
    for artifact in index:
        assert artifact["n_bytes"] is None
        assert artifact["sha256"] in said
        assert artifact["sha256"] in (tmp_path / "out/README.md").read_text()


def test_a_problem_that_has_changed_is_left_out_and_said_so(h200: Workspace, tmp_path: Path, h200_left: Left):
    other = tmp_path / "softmax"
    write(other, {"problem.toml": (Path(load_problem("softmax").path) / "problem.toml").read_text()})
    write(other, {"reference.py": "def reference(x):\n    return x\n"})
    with pytest.raises(UsageError, match="has changed since run softmax-1 began"):
        export(h200.root, "softmax-1", tmp_path / "out", str(other))
    files = folder_files(replace(h200_left, problem=None, no_problem="it has changed"))
    assert "check.py" not in files
    assert "it has changed" in files["README.md"]


def test_of_a_replay_it_is_the_pool_that_knows_another_problem(tmp_path: Path, h200_left: Left):
    write(tmp_path / "softmax", {"problem.toml": (Path(load_problem("softmax").path) / "problem.toml").read_text()})
    write(tmp_path / "softmax", {"reference.py": "def reference(x):\n    return x\n"})
    started = h200_left.state.started
    assert started is not None
    state = RunState(started=replace(started, device=replace(started.device, key="replay:/pools/softmax.jsonl.gz")))
    with pytest.raises(UsageError, match="has changed since the pool that run softmax-1 replays was recorded"):
        find_problem(state, None, str(tmp_path / "softmax"))


def test_a_folder_that_holds_something_is_never_written_into(h200: Workspace, tmp_path: Path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="not an empty folder"):
        export(h200.root, "softmax-1", tmp_path, None)
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]
