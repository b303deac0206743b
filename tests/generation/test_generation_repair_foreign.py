"""What a reply carries beside its kernel (the reference, tests) is left out, and what the kernel needs is not."""

import ast
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbtui.evaluation.policy import check_policy
from kbtui.generation.repair import Mended, mend, repair
from kbtui.generation.signature import input_names
from kbtui.problems import load_problem

ASKED = sorted((Path(__file__).parents[1] / "data/llm_replies/asked").glob("*-*.json"))
#: Six of the 61 carry the reference that they were shown.
CARRY_IT = [path for path in ASKED if "def reference(" in json.loads(path.read_text())["reply"]]
ABOUT = re.compile(r"## Kernel to improve\n.*?```python\n(.*?)```", re.DOTALL)
HEAD = "import torch\nimport triton\nimport triton.language as tl\n"
KERNEL = """

@triton.jit
def double(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, 2 * tl.load(x_ptr + at, mask=at < n), mask=at < n)
"""
HOST = """

def kernel_function(x):
    out = torch.empty_like(x)
    double[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), BLOCK=64)
    return out
"""
GOOD = HEAD + KERNEL + HOST
REFERENCE = """

def reference(x):
    return torch.softmax(x, dim=-1)
"""
INPUTS = """

def make_inputs(shape, generator, device, distribution):
    return (draw(shape, generator, device, distribution),)
"""
MODEL = """

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.rand(3)]


def get_init_inputs():
    return []
"""
TEST = """

def test_it():
    x, = make_inputs((3,), None, "cuda", "normal")
    assert torch.allclose(kernel_function(x), reference(x))
"""
DRAW = "from sample_kernels.distributions import draw\n"


def names_of(source: str) -> list[str]:
    return [s.name for s in ast.parse(source).body if isinstance(s, ast.FunctionDef | ast.ClassDef)]


def made_of(source: str, parent: str | None = None) -> Mended:
    made = mend(source, ("x",), parent)
    assert isinstance(made, Mended), made
    return made


@pytest.mark.parametrize(
    ("source", "left_out"),
    [
        (HEAD + DRAW + REFERENCE + INPUTS + KERNEL + HOST, "reference, make_inputs"),
        (HEAD + DRAW + KERNEL + HOST + REFERENCE + INPUTS + TEST, "reference, make_inputs, test_it"),
        (HEAD + MODEL + KERNEL + HOST, "Model, get_inputs, get_init_inputs"),
        (HEAD + KERNEL + HOST + "\n\ndef benchmark(n):\n    return torch.cuda.Event()\n", "benchmark"),
    ],
)
def test_what_the_kernel_does_not_use_is_left_out_with_its_imports_and_named(source, left_out):
    made = made_of(source)

    assert made.source.split() == GOOD.split()
    assert f"left out {left_out}, which the kernel does not use" in made.notes
    assert ("left out `from sample_kernels.distributions import draw`, which nothing uses" in made.notes) == (
        DRAW in source
    )


USED = {
    "by the entry point": GOOD.replace("    return out", "    return helper(out)")
    + "\n\ndef helper(x):\n    return x\n",
    "through another": GOOD.replace("    return out", "    return one(out)")
    + "\n\ndef one(x):\n    return two(x)\n\n\ndef two(x):\n    return x\n",
    "by a kernel": GOOD.replace("2 * tl", "factor() * tl")
    + "\n\n@triton.constexpr_function\ndef factor():\n    return 2\n",
    "by a constant": GOOD + "\n\ndef size():\n    return 64\n\n\nBLOCK = [size]\n",
    "by a decorator": GOOD.replace("@triton.jit\n", '@triton.heuristics({"BLOCK": wide})\n@triton.jit\n')
    + "\n\ndef wide(args):\n    return 64\n",
    "under the name of the reference": GOOD.replace("    return out", "    return reference(out)") + REFERENCE,
    "as a class": GOOD.replace("    return out", "    return Held(out).out")
    + "\n\nclass Base:\n    pass\n\n\nclass Held(Base):\n    def __init__(self, out):\n        self.out = out\n",
}


@pytest.mark.parametrize("source", USED.values(), ids=USED)
def test_what_the_kernel_uses_stays_as_it_is(source):
    assert made_of(source) == Mended(source, ())


def test_a_class_that_is_the_entry_point_stays_and_the_model_goes():
    new = "\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return launch(x)\n"
    source = HEAD + MODEL + KERNEL + HOST.replace("kernel_function", "launch") + new

    assert names_of(made_of(source).source) == ["double", "launch", "ModelNew"]


def test_a_launcher_by_another_name_is_found_with_the_reference_beside_it():
    source = HEAD + DRAW + REFERENCE + INPUTS + KERNEL + HOST.replace("kernel_function", "run")

    made = made_of(source)

    assert made.source.split() == GOOD.split()
    assert "entry point run renamed to kernel_function" in made.notes


def test_a_kernel_with_the_reference_alone_is_completed_from_its_parent():
    made = made_of(HEAD + DRAW + KERNEL.replace("2 *", "4 *") + REFERENCE + INPUTS, parent=GOOD)

    assert sorted(names_of(made.source)) == ["double", "kernel_function"]
    assert "4 * tl.load" in made.source


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([REFERENCE, INPUTS, MODEL, TEST]), unique=True), st.randoms(use_true_random=False))
def test_whatever_of_it_a_reply_carries_and_wherever_the_same_kernel_comes_of_it(parts, rng):
    pieces = [KERNEL + HOST, *parts]
    rng.shuffle(pieces)

    made = made_of(HEAD + DRAW + "".join(pieces))

    assert made.source.split() == GOOD.split()
    assert made_of(made.source) == Mended(made.source, ())


def test_there_are_real_replies_that_carry_it():
    assert len(CARRY_IT) == 6


@pytest.mark.parametrize("path", CARRY_IT, ids=lambda p: p.stem)
def test_a_real_reply_that_carries_the_reference_has_no_import_that_the_policy_refuses(path):
    kept = json.loads(path.read_text())
    problem, about = load_problem(kept["problem"]), ABOUT.search(kept["prompt"])

    made = repair(kept["reply"], input_names(problem, None), about[1] if about else None)

    assert isinstance(made, Mended)
    assert "left out reference, make_inputs, which the kernel does not use" in made.notes
    assert not {"reference", "make_inputs"} & set(names_of(made.source))
    assert check_policy(made.source, problem.spec).reason == "ok"
