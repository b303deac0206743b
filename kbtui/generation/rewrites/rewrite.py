"""What a rewrite is: a deterministic edit of any Triton source, with its precondition and what it answers. Pure."""

import ast
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kbtui.domain.device import DeviceSpec
from kbtui.domain.problem import ITEM_BYTES, ProblemSpec, Shape
from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.source import Source, parse


@dataclass(frozen=True, slots=True)
class Edit:
    """One application of a rewrite: the new source, what a person reads, and the parameters chosen."""

    source: str
    summary: str
    params: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Target:
    """What an edit may depend on beside the source.

    Attributes:
        dtypes: of the problem's shapes, as torch names them.
        most_elements: elements of all tensors together on its largest shape, inputs and outputs.
    """

    device: DeviceSpec
    dtypes: frozenset[str]
    most_elements: int = 0

    @classmethod
    def of(cls, device: DeviceSpec, spec: ProblemSpec) -> "Target":
        dtypes = frozenset(spec.dtype_of(shape) for shape in spec.shapes)
        return cls(device, dtypes, max((_n_elements(spec, shape) for shape in spec.shapes), default=0))


@dataclass(frozen=True, slots=True)
class Rewrite:
    """An edit of any Triton source.

    Attributes:
        name: the operator's name, e.g. ``num_warps``.
        precondition: what a source must have for it to apply, for a person.
        answers: bottlenecks it may relieve.
        hints: ids of hints it carries out.
        edits: every application to a parsed source, likeliest to help first.
    """

    name: str
    precondition: str
    answers: tuple[Bottleneck, ...]
    hints: tuple[str, ...]
    edits: Callable[[Source, Target], Iterable[Edit]]

    def apply(self, text: str, target: Target) -> tuple[Edit, ...]:
        """Every edit of a source text that changes it and keeps its syntax; none where the precondition fails."""
        return tuple(self.each(text, target))

    def each(self, text: str, target: Target) -> Iterator[Edit]:
        """The same, one at a time: an edit costs some milliseconds, and most are never asked for."""
        source = parse(text)
        made = {text}
        for edit in self.edits(source, target) if source is not None else ():
            if edit.source not in made and _is_python(edit.source):
                made.add(edit.source)
                yield edit


def _n_elements(spec: ProblemSpec, shape: Shape) -> int:
    """Elements that the problem says are moved, at most: one byte each where the dtype is unknown."""
    return math.ceil(spec.bytes_moved(shape) / ITEM_BYTES.get(spec.dtype_of(shape), 1))


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True
