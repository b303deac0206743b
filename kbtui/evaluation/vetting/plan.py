"""Which shapes and distributions null kernels are tried on. Pure.

Those that the gate runs on this device, every timed shape on every distribution, and hidden shapes on two each. Where
there are many rows only a few are tried: what one row's answer is does not depend on the others.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kbtui.domain.problem import ProblemSpec, Shape, ShapeRole
from kbtui.domain.verdict import Proof
from kbtui.evaluation.gate.plan import CheckKind, n_elements, plan

_STAGES = (1, 2, 4)
_N_SMALL = 2
_N_OF_HIDDEN = 2
_SMALL = 1 << 17


@dataclass(frozen=True, slots=True)
class Trial:
    """One draw at one shape. ``other``: the distribution whose answer is a null kernel's; ``seed`` makes the draw."""

    shape: Shape
    distribution: str
    other: str | None
    seed: int


def trials(spec: ProblemSpec, proof: Proof) -> tuple[Trial, ...]:
    """Each pair of shape and distribution once: first those that a candidate is judged by on this device."""
    gated = [
        (c.shape, c.distribution)
        for stage in _STAGES
        for c in plan(spec, stage, 0, proof)
        if c.kind is CheckKind.VALUES
    ]
    timed = [(s, d) for d in spec.distributions for s in spec.shapes_of(ShapeRole.TUNE)]
    hidden = [
        (shape, spec.distributions[(i + j) % len(spec.distributions)])
        for i, shape in enumerate(spec.shapes_of(ShapeRole.HIDDEN))
        for j in range(_N_OF_HIDDEN)
    ]
    pairs = dict.fromkeys((*gated, *timed, *hidden))
    return tuple(Trial(s, d, _other(spec.distributions, d), 1000 + 10 * i) for i, (s, d) in enumerate(pairs))


def small_shapes(spec: ProblemSpec) -> tuple[Shape, ...]:
    """The two smallest shapes on which anything can be reduced: where references are asked how they reduce."""
    of_interpreter = sorted(spec.shapes_of(ShapeRole.PROXY), key=n_elements)
    others = sorted((s for s in spec.shapes if s.role is not ShapeRole.PROXY), key=n_elements)
    reducible = [s for s in (*of_interpreter, *others) if any(size >= 4 for _, size in s.dims)]
    small = [s for s in reducible if n_elements(s) <= _SMALL]
    return tuple(small[:_N_SMALL]) or tuple((reducible or others)[:1])


def _other(distributions: Sequence[str], distribution: str) -> str | None:
    """The one before, as a kernel would have seen it that keeps its last answer."""
    return distributions[distributions.index(distribution) - 1] if len(distributions) > 1 else None
