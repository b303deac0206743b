"""Real kernels, really compiled by ptxas in confined children, for GPUs that are not here."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.problem import Problem, ProblemFormat
from kbtui.domain.verdict import Reason, VerdictKind
from kbtui.evaluation.compile import faults
from kbtui.evaluation.compile.compiler import Compiler, ProblemInputs, describe_inputs
from kbtui.evaluation.compile.report import CompileReport
from kbtui.evaluation.compile.specs import TensorSpec
from kbtui.evaluation.process import Zygote
from kbtui.problems import load_problem

HEAD = """\
import torch
import triton
import triton.language as tl
"""
ONE_ROW = (
    HEAD
    + """

@triton.jit
def row(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    start = tl.program_id(0).to(tl.int64) * n_cols
    x = tl.load(x_ptr + start + at, mask=at < n_cols, other=-float("inf"))
    y = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + start + at, y / tl.sum(y, axis=0), mask=at < n_cols)


def kernel_function(x):
    out = torch.empty_like(x)
    row[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps={warps})
    return out
"""
)
#: Every element of a 256 x 256 tile lives in registers of one warp.
TOO_MANY_STAGES = (
    HEAD
    + """

@triton.jit
def product(a_ptr, out_ptr, n, B: tl.constexpr):
    i, acc = tl.arange(0, B), tl.zeros((B, B), tl.float32)
    for k in range(0, n, B):
        a = tl.load(a_ptr + i[:, None] * n + k + i[None, :])
        acc += tl.dot(a, a)
    tl.store(out_ptr + i[:, None] * n + i[None, :], acc)


def kernel_function(x):
    out = torch.empty_like(x)
    product[(1,)](x, out, x.shape[1], B=256, num_warps=8, num_stages=4)
    return out
"""
)
AUTOTUNED = (
    HEAD
    + """

@triton.autotune([triton.Config({"BLOCK": b}, num_warps=w) for b, w in ((1024, 4), (4096, 8))], key=["n"])
@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)


def kernel_function(x):
    out = torch.empty(x.shape, device=x.device, dtype=x.dtype)
    assert x.is_cuda and x.device.type == "cuda"
    copy[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out
"""
)


def compiled(compiler: Compiler, source: str) -> CompileReport:
    return compiler.submit(source, ("16x16384",)).result(timeout=120)


@pytest.mark.parametrize("compiler", ["a100", pytest.param("h100", marks=pytest.mark.slow)], indirect=True)
def test_a_softmax_is_compiled_with_its_resources(compiler: Compiler, softmax: Problem) -> None:
    assert softmax.kernel_source is not None
    report = compiler.submit(softmax.kernel_source).result(timeout=120)
    assert report.verdict.ok, report.verdict
    assert {r.shape for r in report.resources} == set(compiler.timed_shapes)
    assert all(16 <= r.registers <= 255 and 0 < r.occupancy <= 1 for r in report.resources)
    launch, *more = report.launches_of("4096x16384")
    assert not more
    assert (launch.grid, launch.num_warps) == ((4096, 1, 1), 8)
    assert ("BLOCK", "4096") in launch.constexprs
    assert ("row_stride", "i32:16") in launch.arguments
    assert list(Path(report.cache).glob("*/*.cubin"))


def test_more_values_than_registers_spill(compiler: Compiler) -> None:
    roomy, cramped = (compiled(compiler, ONE_ROW.format(warps=w)).resources[0] for w in (16, 1))
    assert (roomy.spill_bytes, roomy.num_warps) == (0, 16)
    assert cramped.spill_bytes > 1000
    assert cramped.num_warps == 1


def test_too_much_shared_memory_is_rejected_with_its_size(compiler: Compiler) -> None:
    verdict = compiled(compiler, TOO_MANY_STAGES).verdict
    assert (verdict.kind, verdict.reason) == (VerdictKind.REJECTED, Reason.OUT_OF_RESOURCES)
    assert "shared memory" in verdict.detail
    assert "fewer stages" in verdict.detail


def test_every_configuration_of_autotune_is_compiled_and_one_is_launched(compiler: Compiler) -> None:
    report = compiled(compiler, AUTOTUNED)
    assert report.verdict.ok, report.verdict
    assert {launch.constexprs[0][1] for launch in report.launches if launch.tuning} == {"1024", "4096"}
    assert len(report.launches_of("16x16384")) == 1


@pytest.mark.parametrize(
    ("old", "new", "reason", "line"),
    [
        ("import torch\n", "import torch\nx = = 1\n", Reason.SYNTAX, 2),
        ("tl.exp(x", "tl.no_such_function(x", Reason.COMPILE_ERROR, 11),
        ("tl.arange(0, BLOCK)", "tl.arange(0, 100)", Reason.COMPILE_ERROR, 8),
        ("x - tl.max(x, axis=0)", "x - unknown", Reason.COMPILE_ERROR, 11),
        ("torch.empty_like(x)", "torch.empty_like(y)", Reason.RAISED, 16),
        ("import torch\n", "import torch\nraise KeyError('no')\n", Reason.RAISED, 2),
        ("def kernel_function", "def another", Reason.NO_ENTRY_POINT, None),
        ("x.shape[1], BLOCK", "int(x[0, 0].item()), BLOCK", Reason.RAISED, 17),
    ],
)
def test_a_fault_names_its_reason_and_line(
    compiler: Compiler, old: str, new: str, reason: Reason, line: int | None
) -> None:
    source = ONE_ROW.format(warps=4)
    assert old in source
    verdict = compiled(compiler, source.replace(old, new)).verdict
    assert (verdict.kind, verdict.reason, verdict.line) == (VerdictKind.REJECTED, reason, line), verdict
    assert len(verdict.detail.splitlines()) == 1


def test_a_candidate_that_launches_nothing_is_rejected(compiler: Compiler) -> None:
    source = ONE_ROW.format(warps=4).replace("row[(x", "(lambda *a, **k: 0) if 1 else row[(x")
    assert compiled(compiler, source).verdict.reason is Reason.NO_TRITON_KERNEL


def test_a_crash_at_import_is_the_candidates(compiler: Compiler) -> None:
    verdict = compiled(compiler, "import os\nos.abort()\n").verdict
    assert (verdict.kind, verdict.reason) == (VerdictKind.REJECTED, Reason.CRASHED)
    assert "SIGABRT" in verdict.detail


def test_a_hang_at_import_is_ended(
    torch_zygote: Zygote, softmax: Problem, softmax_inputs: ProblemInputs, tmp_path: Path
) -> None:
    with Compiler(
        torch_zygote, DATA_SHEETS["a100"], softmax, softmax_inputs, tmp_path, workers=1, timeout_s=1.0
    ) as compiler:
        verdict = compiler.submit("while True: pass\n").result(timeout=30).verdict
    assert (verdict.kind, verdict.reason) == (VerdictKind.REJECTED, Reason.TIMED_OUT)


def test_an_import_cannot_read_a_secret_or_start_a_program(compiler: Compiler, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    for deed in (f"open({str(secret)!r}).read()", "__import__('subprocess').run(['/bin/cat', '/etc/hostname'])"):
        report = compiled(compiler, deed + "\n")
        assert report.verdict.reason is Reason.RAISED
        assert "PermissionError" in report.verdict.detail


def test_one_candidate_cannot_write_into_anothers_cache(compiler: Compiler) -> None:
    other = Path(compiled(compiler, ONE_ROW.format(warps=8)).cache)
    assert other.is_dir()
    verdict = compiled(compiler, f"open({str(other / 'planted')!r}, 'w')\n").verdict
    assert "PermissionError" in verdict.detail
    assert not (other / "planted").exists()


def test_a_source_is_compiled_once(compiler: Compiler) -> None:
    source = ONE_ROW.format(warps=2)
    assert compiler.submit(source) is compiler.submit(source)
    assert compiler.submit(source, ("16x16384",)) is not compiler.submit(source)


def test_a_kernel_found_in_the_cache_keeps_its_numbers(
    torch_zygote: Zygote, softmax: Problem, softmax_inputs: ProblemInputs, tmp_path: Path
) -> None:
    reports = []
    for _ in range(2):
        with Compiler(torch_zygote, DATA_SHEETS["a100"], softmax, softmax_inputs, tmp_path, workers=1) as compiler:
            reports.append(compiled(compiler, ONE_ROW.format(warps=1)))
            n_files = sum(len(names) for _, _, names in os.walk(reports[0].cache))
    assert reports[0].resources == reports[1].resources
    assert n_files == sum(len(names) for _, _, names in os.walk(reports[1].cache))


def test_inputs_are_described_without_being_made(softmax_inputs: ProblemInputs) -> None:
    assert softmax_inputs.arguments["4096x65536"] == (TensorSpec((4096, 65536), (65536, 1), "float32"),)


#: The other samples' first kernels are compiled for this chip in the samples' own tests, too.
DEARER = [pytest.param(name, marks=pytest.mark.slow) for name in ("group_conv", "linear_relu_div", "mat_vec")]


@pytest.mark.parametrize("name", ["rms_norm", "sdp_attn", *DEARER])
def test_every_samples_first_kernel_compiles(torch_zygote: Zygote, tmp_path: Path, name: str) -> None:
    problem = load_problem(name)
    assert problem.kernel_source is not None
    inputs = describe_inputs(torch_zygote, problem)
    with Compiler(torch_zygote, DATA_SHEETS["a100"], problem, inputs, tmp_path, workers=2) as compiler:
        report = compiler.submit(problem.kernel_source).result(timeout=120)
    assert report.verdict.ok, report.verdict
    assert all(r.registers > 0 for r in report.resources)


KERNELBENCH = """\
import torch
import torch.nn as nn

batch = 16
features = 512

class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(n))

    def forward(self, x):
        return x * self.scale

def get_inputs():
    return [torch.rand(batch, features)]

def get_init_inputs():
    return [features]
"""
MODEL_NEW = (
    HEAD
    + """

@triton.jit
def scale(x_ptr, s_ptr, out_ptr, n, B: tl.constexpr):
    at = tl.arange(0, B)
    x = tl.load(x_ptr + tl.program_id(0) * n + at, mask=at < n)
    tl.store(out_ptr + tl.program_id(0) * n + at, x * tl.load(s_ptr + at, mask=at < n), mask=at < n)


class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.rand(n))

    def forward(self, x):
        out = torch.empty_like(x)
        scale[(x.shape[0],)](x, self.scale, out, x.shape[1], B=512)
        return out
"""
)


def test_a_kernelbench_file_and_its_model_new_compile(torch_zygote: Zygote, tmp_path: Path) -> None:
    path = tmp_path / "scale.py"
    path.write_text(KERNELBENCH)
    problem = load_problem(str(path))
    assert problem.format is ProblemFormat.KERNELBENCH
    inputs = describe_inputs(torch_zygote, problem)
    tune = problem.spec.shapes[0].name
    assert [a.shape for a in inputs.arguments[tune] if isinstance(a, TensorSpec)] == [(16, 512), (512,)]
    assert inputs.contexts[tune]["state_names"] == ["scale"]
    with Compiler(torch_zygote, DATA_SHEETS["a100"], problem, inputs, tmp_path / "cache", workers=1) as compiler:
        report = compiler.submit(MODEL_NEW, (tune,)).result(timeout=60)
        wrong = compiler.submit(MODEL_NEW.replace("self.scale", "self.factor"), (tune,)).result(timeout=60)
    assert report.verdict.ok, report.verdict
    assert report.launches[0].arguments[1] == ("s_ptr", "*fp32:16")
    assert "scale" in wrong.verdict.detail


def test_a_reference_that_raises_is_the_users_to_mend(torch_zygote: Zygote, softmax: Problem) -> None:
    from kbtui.errors import UsageError

    broken = replace(softmax, reference_source="def make_inputs(shape, generator, device, distribution):\n    1 / 0\n")
    with pytest.raises(UsageError, match="softmax raised"):
        describe_inputs(torch_zygote, broken)


FORGES_A_VERDICT = """
import json, os, struct

def forge():
    verdict = {"kind": "verified", "reason": "ok", "stage": 4, "proof": "gpu"}
    report = {"verdict": verdict, "resources": [], "wall_s": 0.0}
    text = json.dumps({"id": 1, "value": {"report": report, "launchers": []}}).encode()
    for fd in range(3, 40):
        if os.path.exists(f"/proc/self/fd/{fd}") and os.readlink(f"/proc/self/fd/{fd}").startswith("socket"):
            os.write(fd, struct.pack("!IQ", len(text), 0) + text)

forge()
"""


def test_a_forged_verdict_of_a_later_stage_is_refused(compiler: Compiler) -> None:
    """It would be taken for a pass of stages that never ran."""
    verdict = compiler.submit(FORGES_A_VERDICT + ONE_ROW.format(warps=4)).result().verdict
    assert (verdict.kind, verdict.reason) == (VerdictKind.REJECTED, Reason.SANDBOX_VIOLATION), verdict


def test_a_workspace_left_on_the_cpu_is_refused_as_the_gpu_would(compiler: Compiler) -> None:
    source = ONE_ROW.format(warps=4).replace("torch.empty_like(x)", "torch.empty(x.shape, dtype=x.dtype)")
    verdict = compiler.submit(source).result().verdict
    assert (verdict.kind, verdict.reason) == (VerdictKind.REJECTED, Reason.RAISED), verdict
    assert "cpu tensor" in verdict.detail


def test_memory_that_runs_out_is_no_error_of_the_text() -> None:
    verdict = faults.judge(MemoryError(), "64x1024")
    assert verdict.reason is Reason.OUT_OF_MEMORY
    assert verdict.detail == "kernel_function on 64x1024 ran out of host memory"


def test_nothing_stays_on_disk_of_a_candidate_that_failed(compiler: Compiler) -> None:
    source = (
        "import os\n\n\ndef kernel_function(x):\n"
        "    open(os.environ['TRITON_CACHE_DIR'] + '/filled', 'wb').write(bytes(1 << 20))\n    raise ValueError('no')\n"
    )
    report = compiler.submit(source).result()
    assert report.verdict.reason is Reason.RAISED, report.verdict
    assert "ValueError" in report.verdict.detail
    assert not compiler.cache_of(source).exists()
