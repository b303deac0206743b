"""Distributions and a tolerance under which a file in KernelBench's format is sound. Pure, but for asking a vetter."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from kbtui.domain.kernelbench import GIVEN
from kbtui.domain.problem import TOLERANCE_FLOOR, Problem, ProblemSpec, Shape, ShapeRole, Tolerance
from kbtui.domain.vetting import DistributionFit, Vetting

DISTRIBUTIONS = ("normal", "wide", "offset", "tiny", "mixed", "structured")
#: A reference whose own error is this many times the floor compares nothing: twice its own error is allowed.
MOST_OWN = 100.0


@dataclass(frozen=True, slots=True)
class Hardened:
    """The problem with inputs and a tolerance to offer, what vetting says of it, and what was left out and why."""

    problem: Problem
    vetting: Vetting
    left_out: tuple[str, ...]


def harden(problem: Problem, vet: Callable[[Problem], Vetting]) -> Hardened:
    """Try the file's own inputs and six distributions, keep those that the reference bears, and vet what is left."""
    tolerance = Tolerance(TOLERANCE_FLOOR[problem.spec.dtype])
    wide = _with(problem, (*DISTRIBUTIONS, GIVEN), tolerance)
    tried = vet(wide)
    bad = {fit.distribution: why for fit in tried.fits if (why := _unbearable(fit, tolerance)) is not None}
    kept = tuple(name for name in (GIVEN, *DISTRIBUTIONS) if name not in bad) or (GIVEN,)
    chosen = _with(problem, kept, tolerance)
    vetting = vet(chosen)
    return Hardened(chosen, vetting, tuple(f"{name}: {why}" for name, why in bad.items()))


def _with(problem: Problem, distributions: tuple[str, ...], tolerance: Tolerance) -> Problem:
    spec = replace(problem.spec, distributions=distributions, tolerance=tolerance)
    return replace(problem, spec=spec)


def _unbearable(fit: DistributionFit, tolerance: Tolerance) -> str | None:
    if fit.finite < 1:
        return f"{1 - fit.finite:.0%} of the answers are NaN or Inf there"
    if fit.own > MOST_OWN * tolerance.floor:
        return f"the reference's own error is {fit.own:.1e} there, and twice that would be allowed"
    return None


def declaration(spec: ProblemSpec, file: str) -> str:
    """The text of a problem.toml for a file in KernelBench's format beside it."""
    lines = [
        f"name = {_text(spec.name)}",
        f"summary = {_text(spec.summary)}",
        f"dtype = {_text(spec.dtype)}",
        f"kernelbench = {_text(file)}",
        f"distributions = [{', '.join(map(_text, spec.distributions))}]",
        "",
        "# Bytes of the inputs alone, a lower bound; count the outputs too, and the operations, for a better one.",
        f"bytes = {_text(spec.bytes_formula)}",
        f"flops = {_text(spec.flops_formula)}",
        "",
        "[tolerance]",
        f"floor = {spec.tolerance.floor:g}",
    ]
    for role in (ShapeRole.TUNE, ShapeRole.HIDDEN, ShapeRole.PROXY):
        for shape in spec.shapes_of(role):
            lines += ["", f"[[{role}]]", *_shape(shape)]
    return "\n".join(lines) + "\n"


def _shape(shape: Shape) -> list[str]:
    dims = ", ".join(f"{name} = {size}" for name, size in shape.dims)
    lines = [f"dims = {{ {dims} }}"]
    if shape.role is ShapeRole.TUNE:
        lines.append(f"from_rung = {shape.from_rung}")
    return lines


def _text(value: str) -> str:
    """A TOML string: JSON's escapes are TOML's."""
    import json

    return json.dumps(value, ensure_ascii=False)
