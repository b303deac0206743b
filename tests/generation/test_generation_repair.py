"""Replies of any form give their code, mended and told; no reply makes the parser raise."""

import ast
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbtui.domain.verdict import Reason
from kbtui.generation.repair import Mended, Rejected, find_code, mend, repair
from kbtui.generation.repair.syntax_prefix import longest_syntax, parses
from kbtui.generation.signature import input_names
from kbtui.problems import load_problem

KEPT = Path(__file__).parents[1] / "data" / "llm_replies"
REPLIES = sorted(KEPT.glob("*.txt"))
ASKED = sorted((KEPT / "asked").glob("*-*.json"))
GOOD = """import torch
import triton
import triton.language as tl


@triton.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n), mask=at < n)


def kernel_function(x):
    out = torch.empty_like(x)
    double[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out
"""


def mended(reply: str, inputs=("x",)) -> Mended:
    made = repair(reply, inputs)
    assert isinstance(made, Mended), made
    ast.parse(made.source)
    return made


@pytest.mark.parametrize("path", REPLIES, ids=lambda p: p.stem)
def test_every_real_reply_gives_a_kernel_with_the_entry_point(path):
    inputs = ("x", "y") if "optimize" in path.stem else ("x",)

    made = mended(path.read_text(), inputs)

    assert "def kernel_function(" in made.source
    assert "@triton.jit" in made.source
    assert any("renamed to kernel_function" in note for note in made.notes)
    assert "```" not in made.source


@pytest.mark.parametrize("path", ASKED, ids=lambda p: p.stem)
def test_every_reply_to_a_prompt_of_ours_gives_its_kernel_and_is_kept_with_its_origin(path):
    kept = json.loads(path.read_text())
    assert all(kept[name] for name in ("model", "date", "run", "candidate", "prompt"))
    if not re.search(r"^\s*@triton\.jit\s.*tl\.store\(", kept["reply"], re.MULTILINE | re.DOTALL):
        assert isinstance(repair(kept["reply"], ("x",)), Rejected)
        return
    made = mended(kept["reply"], input_names(load_problem(kept["problem"]), None))
    assert "def kernel_function(" in made.source
    assert "@triton.jit" in made.source


@pytest.mark.parametrize(
    "reply",
    [
        f"```python\n{GOOD}```",
        f"```\n{GOOD}\n```",
        f"~~~py\n{GOOD}~~~\nThat is all.",
        f"Sure! Here it is:\n\n```python\n{GOOD}",
        f"Here you go: ```python\n{GOOD}```",
        GOOD,
        f"I made it faster.\n\n{GOOD}",
        f"<think>maybe ```python\nx = 1\n``` no</think>\n```python\n{GOOD}```",
        f"<think>never closed\n```python\n{GOOD}```",
        f"\ufeff```python\r\n{GOOD.replace(chr(10), chr(13) + chr(10))}```\r\n",
        "```python\n" + "".join(f"    {line}\n" if line else "\n" for line in GOOD.splitlines()) + "```",
        f"```bash\npip install triton\n```\n```python\n{GOOD}```\n```text\nfast\n```",
        f"First try:\n```python\nx = 1\n```\nBetter:\n```python\n{GOOD}```",
        f"`````python\n{GOOD}`````",
    ],
)
def test_code_is_found_in_any_wrapping_and_left_as_it_is(reply):
    assert mended(reply).source == GOOD


def test_blocks_that_are_one_file_together_are_joined():
    kernel, host = GOOD.split("\n\n\ndef kernel_function")
    reply = f"The kernel:\n```python\n{kernel}\n```\nand its host:\n```python\ndef kernel_function{host}```"

    made = mended(reply)

    assert "joined 2 code blocks" in made.notes
    assert "def double" in made.source
    assert "def kernel_function" in made.source


def test_a_good_source_is_left_as_it_is_and_nothing_is_said():
    assert mend(GOOD, ("x",)) == Mended(GOOD, ())
    for name in ("softmax", "rms_norm", "sdp_attn", "group_conv"):
        source = load_problem(name).kernel_source
        made = mend(source, tuple("abc"[: 3 if name == "sdp_attn" else 2 if name == "group_conv" else 1]))
        assert made == Mended(source, ())


@pytest.mark.parametrize(
    ("old", "new", "note"),
    [
        ("import triton.language as tl\n", "", "added import triton.language as tl"),
        ("import torch\n", "", "added import torch"),
        ("@triton.jit\n", "", "double: added @triton.jit"),
        ("@triton.jit\n", "@tl.jit\n", "double: @tl.jit became @triton.jit"),
        ("@triton.jit\n", "@jit\n", "double: @jit became @triton.jit"),
        ("BLOCK: tl.constexpr", "BLOCK", "double: made BLOCK constexpr"),
        ("x_ptr, out_ptr, n", "x_ptr: tl.Tensor, out_ptr, n: tl.int32", "double: mended the annotations of x_ptr, n"),
        ("def kernel_function", "def run", "entry point run renamed to kernel_function"),
        ("    return out\n", "    return out\n\n\nprint(kernel_function(torch.ones(3)))\n", "left out 1 example"),
        ("    return out\n", '    return out\n\n\nif __name__ == "__main__":\n    pass\n', "left out 1 example"),
        (
            "import torch\n",
            "import torch\nfrom samples.draws import draw\n",
            "left out `from samples.draws import draw`",
        ),
        ("import torch\n", "import torch\nimport numpy as np\n", "left out `import numpy as np`"),
        ("    at = ", "    for _ in tl.arange(0, n, BLOCK):\n        pass\n    at = ", "made 1 loop over tl.arange"),
        ("def double", "def kernel_function", "kernel kernel_function renamed to device_kernel"),
    ],
)
def test_what_is_mendable_is_mended_and_told(old, new, note):
    broken = GOOD.replace(old, new, 1)
    if "kernel kernel_function" in note:
        broken = broken.replace("double[", "kernel_function[").replace("def kernel_function(x)", "def host(x)")

    made = mended(f"```python\n{broken}```")

    assert any(note in said for said in made.notes), made.notes
    assert "def kernel_function(x)" in made.source
    assert "@triton.jit\ndef" in made.source
    assert "import triton.language as tl" in made.source
    assert "BLOCK: tl.constexpr" in made.source
    assert mend(made.source, ("x",)) == Mended(made.source, ())


HOST = GOOD[GOOD.index("def kernel_function") :]
KERNEL = GOOD[GOOD.index("@triton.jit") : GOOD.index("def kernel_function")]
PARENT = (
    GOOD.replace("\n\n@triton.jit", "\nWIDE = 64\n\n\n@triton.jit", 1)
    .replace("64)", "WIDE)")
    .replace("BLOCK=64", "BLOCK=WIDE")
)


@pytest.mark.parametrize(
    ("part", "taken"),
    [
        (HOST, "took double from"),
        (KERNEL.replace("2 *", "tl.load(x_ptr) * 0 + 2 *"), "took WIDE, kernel_function from"),
        (PARENT.replace("WIDE = 64\n", "").replace("2 *", "2.0 *"), "took WIDE from"),
    ],
    ids=["host alone", "kernel alone", "a constant left out"],
)
def test_what_a_reply_leaves_out_is_taken_from_the_kernel_it_is_about(part, taken):
    made = repair(f"```python\n{part}```", ("x",), PARENT)

    assert isinstance(made, Mended), made
    assert any(taken in note for note in made.notes), made.notes
    assert all(word in made.source for word in ("import torch", "def double(", "def kernel_function(x)"))
    assert repair(f"```python\n{made.source}```", ("x",), PARENT) == Mended(made.source, ())


def test_a_constant_that_has_the_name_of_a_parameter_is_taken_where_it_is_used_and_not_where_it_is_one():
    parent = PARENT.replace("WIDE", "BLOCK").replace("BLOCK = 64\n", "BLOCK = 64\nout = numel = None\n")
    made = repair(f"```python\n{parent.replace('BLOCK = 64', '').replace('out = numel = None', '')}```", ("x",), parent)

    assert isinstance(made, Mended), made
    assert "took BLOCK from the kernel it is about" in made.notes
    assert repair(f"```python\n{made.source}```", ("x",), parent) == Mended(made.source, ())
    assert repair(f"```python\n{GOOD}```", ("x",), parent) == Mended(GOOD, ())


def test_a_kernel_of_its_own_takes_nothing_from_the_parent():
    other = GOOD.replace("double", "twice")

    assert repair(f"```python\n{other}```", ("x",), PARENT) == Mended(other, ())
    alone = repair(f"```python\n{KERNEL.replace('double', 'twice')}```", ("x",), PARENT)
    assert isinstance(alone, Rejected)


def test_a_loop_that_is_mended_has_no_bound_made_constexpr():
    looping = GOOD.replace("    at = ", "    for _ in tl.range(0, n, BLOCK):\n        pass\n    at = ")

    assert mended(f"```python\n{looping.replace('tl.range', 'tl.arange')}```").source == looping


def test_a_foreign_import_that_is_used_is_left_for_the_gate_to_refuse():
    source = GOOD.replace("import torch\n", "import torch\nimport numpy\n").replace(
        "out = ", "numpy.empty(1)\n    out = "
    )

    assert mend(source, ("x",)) == Mended(source, ())


def test_a_cut_off_reply_keeps_what_is_whole_and_says_so():
    cut = "```python\n" + GOOD + "\n\ndef another(x):\n    return double[("

    made = mended(cut)

    assert made.source == GOOD
    assert any("left out 2 lines at the end" in note for note in made.notes)


@pytest.mark.parametrize(
    ("reply", "reason", "word"),
    [
        ("I cannot help with that.", Reason.SYNTAX, "no Python code"),
        ("", Reason.SYNTAX, "no Python code"),
        ("```python\ndef f(x):\n    return x\n```", Reason.NO_TRITON_KERNEL, "@triton.jit"),
        ("```python\n" + GOOD.split("def kernel_function")[0] + "```", Reason.NO_ENTRY_POINT, "kernel_function"),
        ("```python\n" + GOOD.replace("(x):", "(x, y):") + "```", Reason.SIGNATURE, "takes (x, y)"),
        ("```python\n" + GOOD[: GOOD.index("return out") - 30], Reason.NO_ENTRY_POINT, "cut off"),
    ],
)
def test_what_cannot_be_mended_is_rejected_with_a_reason(reply, reason, word):
    made = repair(reply, ("x",))

    assert isinstance(made, Rejected)
    assert made.reason is reason
    assert word in made.detail


PIECES = st.sampled_from(
    ["```python\n", "```\n", "~~~\n", "<think>", "</think>", "\n", "    ", "import torch\n", "@triton.jit\n", GOOD,
     "def kernel_function(x):\n    return x\n", "(((", "'''", "k[(1,)](x)\n", "BLOCK: tl.constexpr", "\0", "\\", "é"]
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES | st.text(max_size=8), max_size=25).map("".join))
def test_no_reply_makes_it_raise_and_the_answer_is_always_the_same(reply):
    made = repair(reply, ("x",))

    assert made == repair(reply, ("x",))
    completed = repair(reply, ("x",), PARENT)
    if isinstance(completed, Mended):
        ast.parse(completed.source)
    if isinstance(made, Mended):
        ast.parse(made.source)
        assert mend(made.source, ("x",)) == Mended(made.source, ())


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(GOOD)), st.integers(0, len(GOOD)))
def test_a_reply_cut_anywhere_is_mended_or_rejected(start, length):
    repair("```python\n" + GOOD[start : start + length], ("x",))


@given(st.text(alphabet="ab =():\n  'def", max_size=80))
def test_the_kept_beginning_is_python_and_a_beginning(code):
    kept = longest_syntax(code)

    assert code.startswith(kept)
    assert parses(kept)
    if parses(code):
        assert kept == code


@pytest.mark.parametrize(
    "monster", ["(" * 100_000, "-" * 100_000 + "1", "```python\n" * 20_000, "<think>" * 20_000, "def f():\n" * 5_000]
)
def test_a_monstrous_reply_is_answered_quickly(monster):
    assert isinstance(repair(monster, ("x",)), Rejected)


def test_code_only_in_the_thinking_is_taken_from_there():
    found = find_code(f"<think>Let me write\n```python\n{GOOD}```\n</think>\nDone as above.")

    assert found is not None
    assert found.code == GOOD
    assert "took the code from what the model thought aloud" in found.notes
