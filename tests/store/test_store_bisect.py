"""``git bisect run kbtui verify --bisect`` along a lineage: the real command, the real git, a kernel planted wrong."""

import subprocess
import sys
from pathlib import Path

import pytest

from kbtui.cli import app
from kbtui.cli_guard import guarded
from kbtui.domain.candidate import Candidate, Origin, candidate_id, source_sha
from kbtui.domain.event import CandidateAdmitted
from kbtui.errors import ExitCode
from store.record import create_run

PROBLEM = """
name = "negate"
summary = "The negative of a vector"
dtype = "float32"
distributions = ["normal"]
bytes = "2 * n * itemsize"
flops = "n"
tune = [{ dims = { n = 4096 }, from_rung = 1 }]
hidden = [{ dims = { n = 129 } }]
proxy = [{ dims = { n = 257 } }]
"""
REFERENCE = """
import torch

def reference(x):
    return -x

def make_inputs(shape, generator, device, distribution):
    return (torch.randn(shape["n"], generator=generator, device=device),)
"""
KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def negate(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0)
    tl.store(out_ptr + at, {value}, mask=at < n)

def {name}(x):
    out = torch.empty_like(x)
    negate[(triton.cdiv(x.numel(), {block}),)](x, out, x.numel(), BLOCK={block})
    return out
"""


def kernel(block: int, value: str = "-x", name: str = "kernel_function") -> str:
    return KERNEL.replace("{block}", str(block)).replace("{value}", value).replace("{name}", name)


#: From the oldest: two right ones, no kernel at all (which is skipped), a right one, one wrong in one lane, its heir.
LINEAGE = (
    kernel(32),
    kernel(64),
    kernel(64, name="kernel_of_mine"),
    kernel(128),
    kernel(128, "tl.where(at == n - 1, x, -x)"),
    kernel(256, "tl.where(at == n - 1, x, -x)"),
)


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    folder = tmp_path / "negate"
    folder.mkdir()
    for name, text in (("problem.toml", PROBLEM), ("reference.py", REFERENCE), ("kernel.py", kernel(64))):
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def line(workspace, scene) -> list[str]:
    """The candidates' commits, each made from the one before."""
    ledger = create_run(workspace, scene.run_started())
    commits: list[str] = []
    for number, source in enumerate(LINEAGE, 1):
        parents = (candidate_id(number - 1),) if commits else ()
        made = Candidate(candidate_id(number), source_sha(source), parents, Origin("person", "submit"), "s", "a step")
        commits.append(ledger.commit_candidate(number, source, tuple(commits[-1:]), made.summary, ()))
        ledger.append(CandidateAdmitted(made, 1, commits[-1]), number, 0)
    ledger.close()
    return commits


@pytest.mark.program("git")
def test_bisect_names_the_candidate_that_went_wrong(workspace, line, problem, git, tmp_path):
    tree = tmp_path / "bisect"
    git(workspace.git_dir, "worktree", "add", "--quiet", "--detach", str(tree), line[-1])
    git(tree, "bisect", "start", line[-1], line[0])
    verify = [sys.executable, "-m", "kbtui", "verify", str(problem), "--kernel", "kernel.py"]
    verify += ["--bisect", "--device", "model:a100", "--workspace", str(tmp_path / "verify")]
    done = subprocess.run(
        ["git", "-C", str(tree), "bisect", "run", *verify], capture_output=True, text=True, timeout=300, check=False
    )
    assert f"{line[4]} is the first bad commit" in done.stdout, done.stdout + done.stderr
    log = git(tree, "bisect", "log")
    assert f"# skip: [{line[2]}]" in log
    assert f"# good: [{line[3]}]" in log


@pytest.mark.parametrize("words", [("--kernel", "none.py"), ("--device", "model:b900"), ("--kernel", "text.py")])
def test_what_is_no_verdict_is_125_under_bisect(problem, tmp_path, words, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.py").write_text("not a kernel")
    told = ["verify", str(problem), *words, "--workspace", str(tmp_path / "ws")]
    assert (guarded(app, told), guarded(app, [*told, "--bisect"])) == (ExitCode.USAGE, 125)
    assert capfd.readouterr().err.count("kbtui: ") == 2
