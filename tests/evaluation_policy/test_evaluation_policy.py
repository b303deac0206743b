"""What the static policy lets pass, what it refuses, with which reason and line."""

import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.domain.problem import ProblemSpec
from kbtui.domain.verdict import Reason, VerdictKind
from kbtui.evaluation.policy import check_policy, check_signature, explain
from kbtui.problems import load_problem

ROOT = Path(__file__).parents[2]
HONEST = sorted(ROOT.glob("sample_kernels/*/kernel.py")) + sorted(ROOT.glob("kbtui/generation/playbook/**/*.kernel.py"))
KERNEL = """\
import torch
import triton
import triton.language as tl


@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)


def kernel_function(x):
    {line}
    out = torch.empty_like(x)
    copy[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
"""
LINE = 13


@pytest.fixture(scope="module")
def spec() -> ProblemSpec:
    return load_problem("softmax").spec


def with_line(line: str, top: str = "") -> str:
    return KERNEL.format(line=line) + textwrap.dedent(top)


@pytest.mark.parametrize("path", HONEST, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_our_own_kernels_pass(path: Path, spec: ProblemSpec) -> None:
    verdict = check_policy(path.read_text(), spec)
    assert verdict.ok, verdict


@pytest.mark.parametrize(
    "line",
    [
        "n = x.view(-1).shape[0]",
        "x = x.reshape(x.shape[0], -1).contiguous()",
        "y = x.new_empty((3, 4))",
        "w = torch.zeros(4, dtype=torch.float32, device=x.device)",
        "f = torch.full((4,), float('-inf'), device=x.device)",
        "size = x.element_size() * x.stride(0)",
        "n_sms = torch.cuda.get_device_properties(x.device).multi_processor_count",
        "lowest = torch.finfo(x.dtype).min",
        "wide = x.to(torch.float16)",
        "scale = math.sqrt(2.0)",
        "block = max(16, triton.next_power_of_2(x.shape[-1]))",
        "grid = lambda meta: (triton.cdiv(x.numel(), meta['BLOCK']),)",
        "assert x.is_cuda and x.is_contiguous()",
        "ok = getattr(x, 'is_cuda')",
        "y = x.transpose(0, 1) if x.dim() == 2 else x.permute(0, 2, 1)",
        "size = torch.float32.itemsize",
        "kind = type(x)",
    ],
)
def test_fair_lines_pass(line: str, spec: ProblemSpec) -> None:
    verdict = check_policy("import math\n" + with_line(line), spec)
    assert verdict.ok, verdict


@pytest.mark.parametrize(
    "line",
    [
        "return torch.softmax(x, -1)",
        "return torch.nn.functional.softmax(x, -1)",
        "return x.softmax(-1)",
        "return x @ x",
        "y = x.sum()",
        "y = x.exp_()",
        "y = getattr(torch, 'soft' + 'max')(x, -1)",
        "y = getattr(torch, 'softmax')(x, -1)",
        "y = torch.ops.aten.softmax(x, -1)",
        "y = torch._C._nn.gelu(x)",
        "t = torch",
        "open('/etc/passwd')",
        "exec('import os')",
        "eval('1')",
        "__import__('os')",
        "y = x.__class__.__mro__",
        "y = (lambda: 0).__globals__",
        "y = kernel_function.__code__",
        "e = torch.cuda.Event()",
        "s = torch.cuda.Stream()",
        "g = torch.cuda.CUDAGraph()",
        "torch.cuda.synchronize()",
        "torch.Tensor.sum = None",
        "triton.cdiv = None",
        "v = x.item()",
        "v = x.cpu()",
        "v = id(x)",
        "y = triton.testing.do_bench(lambda: 0)",
        "T = type('T', (torch.Tensor,), {})",
        "import time",
        "from os import path",
        "from torch import softmax",
        "from torch import *",
        "from torch.nn.functional import softmax",
        "from typing import sys",
        "import math; m = math.__loader__",
        "y = tl.core.builtins",
        "y = [c for c in ().__class__.__subclasses__()]",
        "copy.fn",
    ],
)
def test_forbidden_lines_are_refused_with_their_line(line: str, spec: ProblemSpec) -> None:
    verdict = check_policy(with_line(line), spec)
    assert verdict.kind is VerdictKind.REJECTED
    assert verdict.reason in (Reason.POLICY_NAME, Reason.POLICY_IMPORT)
    assert verdict.line == LINE
    assert "; " in verdict.detail


@pytest.mark.parametrize(
    "module",
    ["os", "sys", "subprocess", "time", "threading", "inspect", "gc", "ctypes", "socket", "importlib", "pickle",
     "torch.utils.cpp_extension", "torch.distributed", "triton.testing", "triton.runtime", "numpy", "builtins"],
)  # fmt: skip
def test_other_imports_are_refused(module: str, spec: ProblemSpec) -> None:
    for statement in (f"import {module}", f"import {module} as m"):
        verdict = check_policy(f"{statement}\n{with_line('pass')}", spec)
        assert (verdict.reason, verdict.line) == (Reason.POLICY_IMPORT, 1)


def test_a_subclass_of_tensor_is_refused(spec: ProblemSpec) -> None:
    verdict = check_policy(with_line("pass", "class Lazy(torch.Tensor):\n    pass\n"), spec)
    assert verdict.reason is Reason.POLICY_NAME


def test_an_op_the_problem_allows_passes_in_every_spelling(spec: ProblemSpec) -> None:
    allowing = replace(spec, allowed_ops=("aten.mm", "torch.nn.functional.linear"))
    for line in ("y = torch.mm(x, x)", "y = x.mm(x)", "y = torch.nn.functional.linear(x, x)"):
        assert check_policy(with_line(line), allowing).ok
        assert not check_policy(with_line(line), spec).ok


def test_a_syntax_error_names_its_line(spec: ProblemSpec) -> None:
    verdict = check_policy(with_line("x = = 2"), spec)
    assert (verdict.reason, verdict.line) == (Reason.SYNTAX, LINE)


def test_without_an_entry_point(spec: ProblemSpec) -> None:
    source = with_line("pass").replace("def kernel_function", "def my_kernel")
    assert check_policy(source, spec).reason is Reason.NO_ENTRY_POINT


def test_without_a_kernel(spec: ProblemSpec) -> None:
    assert check_policy("def kernel_function(x):\n    return x\n", spec).reason is Reason.NO_TRITON_KERNEL


def test_a_kernel_that_nothing_refers_to(spec: ProblemSpec) -> None:
    source = "\n".join(line for line in with_line("pass").splitlines() if "copy[" not in line)
    verdict = check_policy(source, spec)
    assert verdict.reason is Reason.NO_TRITON_KERNEL
    assert "copy" in verdict.detail


def test_a_model_new_is_an_entry_point(spec: ProblemSpec) -> None:
    source = with_line("pass") + textwrap.dedent("""
        import torch.nn as nn
        class ModelNew(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.empty(4))
            def forward(self, x):
                return run(x)
    """)
    source = source.replace("def kernel_function", "def run")
    assert check_policy(source, spec).ok


@pytest.mark.parametrize(
    ("signature", "n_inputs", "ok"),
    [
        ("x", 1, True), ("x, y", 1, False), ("x", 2, False), ("*inputs", 3, True), ("x, eps=1e-5", 1, True),
        ("x, eps=1e-5", 2, True), ("x, *, w", 1, False), ("x, *, w=1", 1, True), ("x, y, /", 2, True),
    ],
)  # fmt: skip
def test_the_signature_must_take_the_references_inputs(signature: str, n_inputs: int, ok: bool) -> None:
    verdict = check_signature(f"def kernel_function({signature}):\n    pass\n", n_inputs)
    assert verdict.ok is ok
    assert ok or verdict.reason is Reason.SIGNATURE


def test_the_policy_explains_itself(spec: ProblemSpec) -> None:
    text = explain(replace(spec, allowed_ops=("torch.mm",)))
    assert "torch.mm" in text
    assert "kernel_function" in text
    assert max(map(len, text.splitlines())) <= 120


@given(st.text(max_size=200))
def test_any_text_gets_a_verdict(text: str) -> None:
    assert check_policy(text, load_problem("softmax").spec).kind is VerdictKind.REJECTED


def test_deeply_nested_text_gets_a_verdict(spec: ProblemSpec) -> None:
    assert check_policy("(" * 5000, spec).reason is Reason.SYNTAX
    assert not check_policy("x = " + "-" * 5000 + "1", spec).ok
