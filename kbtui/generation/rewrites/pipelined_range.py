"""Loops that load ahead: range becomes tl.range with stages of its own."""

from collections.abc import Iterable

from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.loops import edits_of_loop_option
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target
from kbtui.generation.rewrites.source import Source


def _edits(source: Source, _target: Target) -> Iterable[Edit]:
    return edits_of_loop_option(source, "num_stages", (2, 3, 4, 1))


REWRITE = Rewrite(
    "pipelined_range",
    "a loop with a load in it",
    (Bottleneck.LATENCY, Bottleneck.DRAM, Bottleneck.BARRIER),
    ("load_ahead", "fewer_stages"),
    _edits,
)
