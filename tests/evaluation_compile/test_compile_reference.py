"""References of both formats, and candidates that bring a ModelNew, on the CPU."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from kbtui.domain.problem import Problem
from kbtui.evaluation import candidate_module
from kbtui.evaluation.model_context import ModelContext
from kbtui.evaluation.reference import load_reference
from kbtui.problems import load_problem

KERNELBENCH = """\
import torch
import torch.nn as nn

batch = 4
features = 8

class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = nn.Linear(n, n)
        self.norm = nn.BatchNorm1d(n)

    def forward(self, x):
        return self.norm(self.linear(x))

def get_inputs():
    return [torch.rand(batch, features)]

def get_init_inputs():
    return [features]
"""
MODEL_NEW = """\
import torch

class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.inner = torch.nn.Module()
        self.inner.scale = torch.nn.Parameter(torch.zeros(n))
        self.register_buffer("shift", torch.zeros(n))

    def forward(self, x):
        return x * self.inner.scale + self.shift
"""


@pytest.fixture
def kernelbench(tmp_path: Path) -> Problem:
    path = tmp_path / "norm.py"
    path.write_text(KERNELBENCH)
    return load_problem(str(path))


def test_a_folders_inputs_depend_on_the_seed_alone() -> None:
    problem = load_problem("softmax")
    loaded = load_reference(problem)
    one, same, other = (loaded.make_inputs({"rows": 3, "cols": 5}, s, "cpu", "normal")[0] for s in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.allclose(loaded.reference(one), torch.softmax(one, -1))


def test_state_follows_the_inputs_and_is_what_the_reference_uses(kernelbench: Problem) -> None:
    loaded = load_reference(kernelbench)
    x, *state = loaded.make_inputs({"batch": 4, "features": 8}, 3, "cpu", "given")
    names = loaded.context_of({"batch": 4, "features": 8}).state_names
    assert names[:2] == ("linear.weight", "linear.bias")
    assert len(state) == len(names)
    expected = loaded.reference(x, *state)
    running_mean = state[names.index("norm.running_mean")]
    assert torch.equal(running_mean, torch.zeros(8)), "a call changed its own inputs"
    doubled = [2 * v if n.startswith("norm.weight") else v for n, v in zip(names, state, strict=True)]
    assert torch.allclose(loaded.reference(x, *doubled), 2 * expected, atol=1e-5)
    assert (
        loaded.reference(x.double(), *(v.double() if v.is_floating_point() else v for v in state)).dtype
        is torch.float64
    )


def test_another_shape_is_the_file_with_other_constants(kernelbench: Problem) -> None:
    loaded = load_reference(kernelbench)
    small = loaded.make_inputs({"batch": 2, "features": 4}, 0, "cpu", "given")
    large = loaded.make_inputs({"batch": 4, "features": 8}, 0, "cpu", "given")
    assert loaded.reference(*small).shape == (2, 4)
    assert loaded.reference(*large).shape == (4, 8)


def test_other_distributions_redraw_the_inputs(kernelbench: Problem) -> None:
    loaded = load_reference(kernelbench)
    dims = {"batch": 64, "features": 8}
    given, offset = (loaded.make_inputs(dims, 0, "cpu", d)[0] for d in ("given", "offset"))
    assert given.shape == offset.shape
    assert offset.mean() > given.mean() + 1


def test_sizes_are_known_without_values(kernelbench: Problem) -> None:
    x, *_ = load_reference(kernelbench).make_inputs({"batch": 4, "features": 8}, 0, "meta", "given")
    assert (x.device.type, tuple(x.shape)) == ("meta", (4, 8))


def test_a_model_new_sees_state_refilled_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    entry = candidate_module.load(MODEL_NEW, ModelContext((3,), ("inner.scale", "shift")))
    x, scale, shift = torch.ones(2, 3), torch.full((3,), 2.0), torch.full((3,), 1.0)
    with torch.no_grad():
        assert torch.equal(entry(x, scale, shift), torch.full((2, 3), 3.0))
        scale.fill_(5.0)
        assert torch.equal(entry(x, scale, shift), torch.full((2, 3), 6.0))
        assert torch.equal(entry(x, torch.zeros(3), shift), torch.full((2, 3), 1.0))


def test_a_model_new_without_the_references_state_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(candidate_module.NoEntryPoint, match=r"linear\.weight"):
        candidate_module.load(MODEL_NEW, ModelContext((3,), ("linear.weight",)))


def test_a_source_without_an_entry_point_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(candidate_module.NoEntryPoint, match="kernel_function"):
        candidate_module.load("x = 1\n")


def test_a_reference_that_lacks_a_function_says_which() -> None:
    broken = replace(load_problem("softmax"), reference_source="def reference(x):\n    return x\n")
    with pytest.raises(AttributeError, match="make_inputs"):
        load_reference(broken)
