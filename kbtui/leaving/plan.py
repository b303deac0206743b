"""What ``check.py`` needs to know, as plain values: the gate's checks with seeds, shapes to time, times. Pure."""

from typing import Any

from kbtui.domain.codec import to_plain
from kbtui.domain.problem import Problem, ProblemSpec, Shape, ShapeRole
from kbtui.domain.verdict import Proof
from kbtui.evaluation.gate.plan import CheckKind, plan
from kbtui.result import RunResult, headline
from kbtui.scheduler.state import RunState

_STAGES = (1, 2, 4)
#: What check.py does; the gate's other checks need its two processes.
_COMPARED = (CheckKind.VALUES, CheckKind.REPEAT)


def check_plan(
    problem: Problem, state: RunState, result: RunResult, files: dict[str, str | None], kernel_sha256: str
) -> dict[str, Any]:
    """``files``: names of ``reference``, ``kernel`` and ``first_kernel`` in the folder; JSON values throughout."""
    assert state.started is not None
    spec, seed = problem.spec, state.started.seed
    return {
        **files,
        "problem": spec.name,
        "title": headline(result),
        "format": str(problem.format),
        "kernel_sha256": kernel_sha256,
        "dtype": spec.dtype,
        "tolerance": to_plain(spec.tolerance),
        "checks": {str(proof): _checks(spec, seed, proof) for proof in (Proof.GPU, Proof.INTERPRETER)},
        "timed": {
            str(Proof.GPU): [_timed(spec, s, seed) for s in spec.shapes_of(ShapeRole.TUNE)],
            str(Proof.INTERPRETER): [_timed(spec, s, seed) for s in spec.shapes_of(ShapeRole.PROXY)],
        },
        "recorded": _recorded(result),
    }


def _checks(spec: ProblemSpec, seed: int, proof: Proof) -> list[dict[str, Any]]:
    """Each call of the gate's stages that compares values, with the inputs' seed, once where stages repeat it."""
    found = [(stage, c) for stage in _STAGES for c in plan(spec, stage, seed, proof) if c.kind in _COMPARED]
    return [
        {"kind": str(c.kind), "stage": stage, "distribution": c.distribution, "seed": c.seed, **_shape(spec, c.shape)}
        for stage, c in found
    ]


def _shape(spec: ProblemSpec, shape: Shape) -> dict[str, Any]:
    return {"shape": shape.name, "dims": shape.as_dict(), "dtype": spec.dtype_of(shape)}


def _timed(spec: ProblemSpec, shape: Shape, seed: int) -> dict[str, Any]:
    return {"seed": seed, "distribution": spec.distributions[0], **_shape(spec, shape)}


def _recorded(result: RunResult) -> dict[str, Any]:
    first = result.over("first")
    ratios = {shape: ratio for shape, ratio, _, _ in first.per_shape} if first else {}
    times: dict[str, dict[str, float | None]] = {
        "kernel": {s.shape: s.champion_us for s in result.shapes},
        "PyTorch": {s.shape: s.eager_us for s in result.shapes},
        "first kernel": {s.shape: s.champion_us * ratios[s.shape] for s in result.shapes if s.shape in ratios},
    }
    return {"clock": str(result.clock), "device": result.device, "us": times}
