"""A loop walked backwards: a second pass begins with what the first one left in the cache."""

from collections.abc import Iterator

import libcst as cst

from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.loops import independent_loops, span_of
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target
from kbtui.generation.rewrites.source import Replacement, Source
from kbtui.generation.rewrites.syntax import find_names, statement

_BACK = "back"


def _edits(source: Source, _target: Target) -> Iterator[Edit]:
    for name, kernel in source.kernels.items():
        loops = independent_loops(kernel)
        if not loops or _BACK in find_names(kernel):
            continue
        # The last pass is the one that reads what others have read.
        for chosen, which in ((loops[-1:], "last loop"), (loops, "all loops")):
            changes: dict[cst.CSTNode, Replacement] = dict.fromkeys(chosen, _backwards)
            yield Edit(source.code_with(changes), f"{which} of {name} backwards", (("order", which),))


def _backwards(node: cst.CSTNode) -> cst.CSTNode:
    loop = cst.ensure_type(node, cst.For)
    span = span_of(loop)
    assert span is not None
    index, stop, step = span
    first = statement(f"{index} = (tl.cdiv({stop}, {step}) - 1) * {step} - {_BACK}")
    body = cst.ensure_type(loop.body, cst.IndentedBlock)
    return loop.with_changes(target=cst.Name(_BACK), body=body.with_changes(body=[first, *body.body]))


REWRITE = Rewrite(
    "loop_order",
    "a loop `for s in range(0, n, T)` whose turns do not depend on each other but for sums and maxima",
    (Bottleneck.EXTRA_PASSES, Bottleneck.DRAM),
    ("stream_past_the_cache",),
    _edits,
)
