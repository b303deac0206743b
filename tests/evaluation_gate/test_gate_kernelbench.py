"""KernelBench's format through the gate: ModelNew and its state, and kernel_function given the same state."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kbtui.domain.problem import Problem, Shape, ShapeRole
from kbtui.domain.verdict import Reason, VerdictKind
from kbtui.evaluation.gate.interpreter import InterpreterGate
from kbtui.evaluation.process import Zygote
from kbtui.problems import load_problem

FILES = Path(__file__).parents[1] / "data" / "kernelbench"
KERNEL = """
# Not kernel_function, which this file does not define.
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def linear(x, w, b, o, K, N, scale, BK: tl.constexpr):
    row, col = tl.program_id(0), tl.program_id(1)
    acc = tl.zeros((BK,), dtype=tl.float32)
    for k in range(0, K, BK):
        at = k + tl.arange(0, BK)
        inside = at < K
        acc += tl.load(x + row * K + at, mask=inside, other=0.0) * tl.load(w + col * K + at, mask=inside, other=0.0)
    y = (tl.sum(acc, axis=0) + tl.load(b + col)) * scale
    tl.store(o + row * N + col, tl.maximum(y, 0.0))


def run(x, weight, bias, scale):
    out = torch.empty((x.shape[0], weight.shape[0]), device=x.device, dtype=x.dtype)
    linear[out.shape](x, weight, bias, out, x.shape[1], weight.shape[0], scale, BK=64)
    return out

"""
MODEL = (
    KERNEL
    + """
class ModelNew(nn.Module):
    def __init__(self, in_features, out_features, scale):
        super().__init__()
        self.linear = nn.Linear(in_features, out_features)
        self.scale = scale

    def forward(self, x):
        return run(x, self.linear.weight, self.linear.bias, {scale})
"""
)
FUNCTION = f"""{KERNEL.replace("# Not", "#")}
def kernel_function(x, weight, bias):
    return run(x, weight, bias, 0.5)
"""
HONEST = MODEL.format(scale="self.scale")


def _small(problem: Problem) -> Problem:
    """With hidden and proxy shapes of few rows and columns: an interpreter's programs take a millisecond each."""
    names = ("batch_size", "in_features", "out_features")
    small = tuple(
        Shape(role.value, tuple(zip(names, sizes, strict=True)), role)
        for role, sizes in ((ShapeRole.PROXY, (3, 70, 5)), (ShapeRole.HIDDEN, (1, 64, 9)))
    )
    return replace(problem, spec=replace(problem.spec, shapes=(*problem.spec.shapes_of(ShapeRole.TUNE), *small)))


@pytest.fixture(scope="module")
def linear(zygote: Zygote) -> Iterator[InterpreterGate]:
    gate = InterpreterGate(zygote, _small(load_problem(str(FILES / "scaled_linear.py"))), call_timeout_s=20.0)
    gate.open()
    yield gate
    gate.close()


@pytest.mark.parametrize("source", [HONEST, FUNCTION], ids=["ModelNew", "kernel_function"])
def test_both_forms_are_verified_with_the_references_state(linear: InterpreterGate, source: str) -> None:
    for stage in (1, 2, 4):
        verdict = linear.check(source, stage, seed=3)
        assert verdict.ok, verdict


CHEATS = {
    "another scale": (MODEL.format(scale="0.51"), Reason.WRONG_VALUES),
    "no bias": (HONEST.replace(" + tl.load(b + col)", ""), Reason.WRONG_VALUES),
    "no clamp": (HONEST.replace("tl.maximum(y, 0.0)", "y"), Reason.WRONG_VALUES),
    "torch's own layer": (
        HONEST.replace("        return run(", "        run(")
        + "        return self.linear(x).mul_(self.scale).relu_()\n",
        Reason.FORBIDDEN_OP,
    ),
    "state of its own": (
        HONEST.replace("self.linear =", "self.other ="),
        Reason.NO_ENTRY_POINT,
    ),
    "weights written to": (
        HONEST.replace("        return run(", "        y = run(")
        + "        self.linear.bias.zero_()\n        return y\n",
        Reason.INPUT_MODIFIED,
    ),
}


@pytest.mark.parametrize("name", CHEATS)
def test_a_wrong_model_earns_its_reason(linear: InterpreterGate, name: str) -> None:
    source, reason = CHEATS[name]
    verdict = linear.check(source, 1, seed=3)
    assert (verdict.kind, verdict.reason) == (VerdictKind.REJECTED, reason), verdict
