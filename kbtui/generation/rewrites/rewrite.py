"""What a rewrite is: a deterministic edit of any Triton source, with its precondition and what it answers. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kbtui.domain.device import DeviceSpec
from kbtui.domain.problem import ProblemSpec
from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.syntax import Source, parse


@dataclass(frozen=True, slots=True)
class Edit:
    """One application of a rewrite: the new source, what a person reads, and the parameters chosen."""

    source: str
    summary: str
    params: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Target:
    """What an edit may depend on beside the source."""

    device: DeviceSpec
    dtypes: frozenset[str]

    @classmethod
    def of(cls, device: DeviceSpec, spec: ProblemSpec) -> "Target":
        return cls(device, frozenset(spec.dtype_of(shape) for shape in spec.shapes))


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
        source = parse(text)
        if source is None:
            return ()
        kept: dict[str, Edit] = {}
        for edit in self.edits(source, target):
            if edit.source != text and parse(edit.source) is not None:
                kept.setdefault(edit.source, edit)
        return tuple(kept.values())
