"""Loops unrolled a few times, so that loads of several iterations are in flight."""

from collections.abc import Iterable

from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.loops import edits_of_loop_option
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target
from kbtui.generation.rewrites.source import Source


def _edits(source: Source, _target: Target) -> Iterable[Edit]:
    return edits_of_loop_option(source, "loop_unroll_factor", (2, 4))


REWRITE = Rewrite(
    "unrolled_range",
    "a loop with a load in it",
    (Bottleneck.LATENCY, Bottleneck.COMPUTE),
    ("load_ahead",),
    _edits,
)
