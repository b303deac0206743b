"""Every mistake in a reference is one clear line."""

from pathlib import Path

import pytest

from kbtui.domain.vetting import Flaw
from kbtui.problems import load_problem

DECLARED = """
name = "scale"
dtype = "float32"
distributions = ["normal", "wide"]
bytes = "2 * rows * n * itemsize"
flops = "rows * n"
[[tune]]
dims = { rows = 8, n = 64 }
[[hidden]]
dims = { rows = 3, n = 7 }
"""
REFERENCE = """
import torch
from sample_kernels.distributions import draw


def reference(x):
    return torch.softmax(x, -1)


def make_inputs(shape, generator, device, distribution, dtype="float32"):
    x = draw(distribution, (shape["rows"], shape["n"]), generator=generator, device=device, dtype=dtype)
    return (x,)
"""


@pytest.fixture
def told(tmp_path: Path, vetted):
    """What vetting says of the problem above with some of its text replaced."""

    def told(reference: tuple[str, str] = ("", ""), declared: tuple[str, str] = ("", "")):
        assert reference[0] in REFERENCE
        assert declared[0] in DECLARED
        (tmp_path / "reference.py").write_text(REFERENCE.replace(*reference, 1))
        (tmp_path / "problem.toml").write_text(DECLARED.replace(*declared, 1))
        return vetted(load_problem(str(tmp_path)))

    return told


def test_the_problem_itself_is_sound(told):
    vetting = told()
    assert vetting.sound, vetting.complaints
    assert vetting.reductions == ("x[1] (symmetric)",)


MISTAKES = {
    "raises": (("return torch.softmax(x, -1)", "return torch.softmaxx(x, -1)"), Flaw.REFERENCE_RAISES,
               "the reference of scale raised AttributeError: module 'torch' has no attribute 'softmaxx', "
               "at reference.py line 7"),
    "does not import": (("import torch\n", "import torchh\n"), Flaw.REFERENCE_RAISES, "No module named 'torchh'"),
    "does not parse": (("def reference(x):", "def reference(x:"), Flaw.REFERENCE_RAISES, "at reference.py line"),
    "has no make_inputs": (("def make_inputs", "def make_input"), Flaw.REFERENCE_RAISES, "define reference(*inputs)"),
    "takes too few": (("return (x,)", "return x, x"), Flaw.BAD_INPUTS,
                      "make_inputs returns 2 inputs, the reference takes 1; return (x,) from make_inputs"),
    "no tuple": (("return (x,)", "return x"), Flaw.REFERENCE_RAISES, "returned a tensor, not a tuple"),
    "no tensor": (("return (x,)", "return (3,)"), Flaw.BAD_INPUTS, "make_inputs returns no tensor"),
    "odd input": (("return (x,)", "return (x, {})"), Flaw.BAD_INPUTS, "make_inputs returns a dict as input 1"),
    "no generator": (("generator=generator", "generator=None"), Flaw.BAD_INPUTS, "other values for the same seed"),
    "no seed": (("return (x,)", "return (torch.linspace(-1, 1, 64).expand(8, 64).contiguous(),)"), Flaw.BAD_INPUTS,
                "the same values for every seed"),
    "other dtype": (("return (x,)", "return (x.double(),)"), Flaw.BAD_INPUTS,
                    "inputs are float64, the problem says float32"),
    "no output": (("return torch.softmax(x, -1)", "return None"), Flaw.BAD_OUTPUT, "the reference returns a NoneType"),
    "random": (("return torch.softmax(x, -1)", "return torch.softmax(x + torch.rand_like(x), -1)"),
               Flaw.NOT_DETERMINISTIC, "two answers to the same inputs"),
    "in place": (("return torch.softmax(x, -1)", "return x.mul_(2) * 1"), Flaw.INPUT_MODIFIED, "writes to its input 0"),
    "constant": (("return torch.softmax(x, -1)", "return torch.zeros_like(x)"), Flaw.NULL_PASSES,
                 "zeros would pass on 8x64: it is the answer there"),
    "identity": (("return torch.softmax(x, -1)", "return x * 1"), Flaw.NULL_PASSES, "x returned would pass"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_reference_is_one_line(told, mistake):
    change, flaw, says = MISTAKES[mistake]
    vetting = told(reference=change)
    assert vetting.complaints[0].flaw is flaw
    assert says in str(vetting.complaints[0])
    assert "\n" not in vetting.headline


DECLARATIONS = {
    "bytes twice over": (("2 * rows", "4 * rows"), Flaw.BAD_FORMULA,
                         "the bytes formula gives 336 for 3x7, inputs and outputs have 168"),
    "too precise": (("[[tune]]", "[tolerance]\nfloor = 1e-9\n[[tune]]"), Flaw.BAD_TOLERANCE,
                    "floor = 1e-09 is below the reference's own error"),
    "anything goes": (("[[tune]]", "[tolerance]\nfloor = 0.99\n[[tune]]"), Flaw.NULL_PASSES, "set [tolerance] floor"),
    "too large": (("rows = 3, n = 7", "rows = 1000000, n = 1000000"), Flaw.TOO_LARGE,
                  "the hidden shape 1000000x1000000 has 3725.3 GB of inputs; choose one under 24.0 GB"),
    "no such distribution": (('"wide"', '"wied"'), Flaw.REFERENCE_RAISES, "unknown distribution 'wied'"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", DECLARATIONS)
def test_a_declaration_that_does_not_fit_the_reference_is_one_line(told, mistake):
    change, flaw, says = DECLARATIONS[mistake]
    complaints = told(declared=change).complaints
    assert says in str(next(c for c in complaints if c.flaw is flaw))
    assert all("\n" not in str(c) for c in complaints)


def test_what_is_weak_is_noted_and_not_refused(told):
    vetting = told(declared=("[[tune]]", "[tolerance]\nfloor = 1e-3\n[[tune]]"))
    assert vetting.sound
    assert any("half precision will do" in note for note in vetting.notes)


def test_a_distribution_that_is_not_looked_at_is_noted(told):
    vetting = told(reference=("draw(distribution", 'draw("normal"'))
    assert any("wide draw the same values as normal" in note for note in vetting.notes)
