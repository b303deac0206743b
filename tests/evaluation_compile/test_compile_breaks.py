"""Kernels that Triton's compiler breaks over, rather than refuses with a line: they are told as compile errors."""

from pathlib import Path

import pytest

from kbtui.domain.verdict import Reason, VerdictKind
from kbtui.evaluation.compile.compiler import Compiler
from kbtui.evaluation.compile.last_words import failed_pass, last_words

THREE_PASSES = Path(__file__).parents[1] / "data/kernels/softmax_three_pass_rows.py"
KERNEL = """\
import torch
import triton
import triton.language as tl


@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    {body}
    tl.store(out_ptr + at, x, mask=at < n)


def kernel_function(x):
    {first}
    out = torch.empty_like(x)
    copy[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024{option})
    return out
"""


def kernel(body: str = "pass", option: str = "", first: str = "pass") -> str:
    return KERNEL.format(body=body, option=option, first=first)


def assembly(text: str, constraints: str) -> str:
    return f'x = tl.inline_asm_elementwise("{text}", "{constraints}", [x], dtype=tl.float32, is_pure=True, pack=1)'


BREAKS = {
    "a pass fails": (THREE_PASSES.read_text(), "in its pass TritonGPUOptimizeThreadLocality"),
    "an option is refused": (kernel(option=", num_warps=3"), "num_warps must be a power of 2"),
    "the assembler refuses": (kernel(assembly("nonsense.f32 $0, $1;", "=f,f")), "any known instruction: 'nonsense'"),
    "the compiler aborts": (kernel(assembly("mov.f32 $0, $1;", "=f,f,f")), "number of input constraints"),
}


@pytest.mark.parametrize(("source", "told"), BREAKS.values(), ids=BREAKS)
def test_what_the_compiler_breaks_over_is_a_compile_error(compiler: Compiler, source: str, told: str) -> None:
    verdict = compiler.submit(source, ("16x16384",)).result(timeout=120).verdict
    assert (verdict.kind, verdict.reason) == (VerdictKind.REJECTED, Reason.COMPILE_ERROR), verdict
    assert told in verdict.detail
    assert verdict.detail.isprintable()


OTHER = {
    "an unknown option": (kernel(option=", nonsense=3"), Reason.RAISED),
    "an error in the words of the compiler": (
        kernel(first="raise RuntimeError('PassManager::run failed in triton/compiler/compiler.py')"), Reason.RAISED),
    "an abort without the compiler's words": ("import os\nos.abort()\n", Reason.CRASHED),
}  # fmt: skip


@pytest.mark.parametrize(("source", "reason"), OTHER.values(), ids=OTHER)
def test_what_fails_outside_the_compiler_is_none(compiler: Compiler, source: str, reason: Reason) -> None:
    verdict = compiler.submit(source, ("16x16384",)).result(timeout=120).verdict
    assert (verdict.kind, verdict.reason) == (VerdictKind.REJECTED, reason), verdict


def test_what_fails_as_nobody_foresaw_is_compiled_anew(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> None:
    def defect(source: str, names: tuple[str, ...]) -> None:
        raise RuntimeError("nobody foresaw this")

    unreadable = "x = = 1  # as nobody foresaw\n"
    with monkeypatch.context() as patched:
        patched.setattr(compiler, "_compile", defect)
        with pytest.raises(RuntimeError, match="nobody foresaw"):
            compiler.submit(unreadable).result(timeout=60)
    assert compiler.submit(unreadable).result(timeout=60).verdict.reason is Reason.SYNTAX


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("", None),
        ("hello\n", None),
        ("why\nUNREACHABLE executed at /source/llvm/Error.h:779!\n", "why"),
        ("UNREACHABLE executed at Error.h:779!\n", "UNREACHABLE executed at Error.h:779!"),
        ("python: /project/lib/A.cpp:341: void f(): Assertion `one == 1' failed.\n#0 a stack\n", "one == 1"),
        ("LLVM ERROR: Cannot select: t5\n", "Cannot select: t5"),
    ],
)
def test_the_compilers_last_words_are_found_in_the_log(log: str, said: str | None) -> None:
    assert last_words(log) == said


def test_the_pass_that_failed_last_is_named() -> None:
    log = "".join(f"k.py:9:0: note: Pipeline failed while executing [`{name}` on 'builtin.module'\n" for name in "AB")
    assert (failed_pass(log), failed_pass("")) == ("B", None)
