"""A loop over pieces of work and the loop inside it run as one, so that loads of the next piece begin early."""

from collections.abc import Iterator

import libcst as cst

from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.loops import is_counted
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target
from kbtui.generation.rewrites.source import Replacement, Source
from kbtui.generation.rewrites.syntax import argument, calls_in, expression, find_all, with_keyword


def _edits(source: Source, _target: Target) -> Iterator[Edit]:
    for name, kernel in source.kernels.items():
        nests = find_all(kernel, cst.For)
        outer = [loop for loop in nests if is_counted(loop) and not _chosen(loop) and _has_one_loading_loop(loop)]
        changes: dict[cst.CSTNode, Replacement] = {loop.iter: _flattened for loop in outer}
        if outer:
            yield Edit(source.code_with(changes), f"nested loops of {name} flattened", (("flatten", "True"),))


def _chosen(loop: cst.For) -> bool:
    """Whether its author decided already, by a literal or by a parameter of the kernel's."""
    return argument(cst.ensure_type(loop.iter, cst.Call), "flatten") is not None


def _has_one_loading_loop(loop: cst.For) -> bool:
    """Whether its body holds exactly one loop, itself counted, and that one loads."""
    inner = find_all(loop.body, cst.For)
    return len(inner) == 1 and is_counted(inner[0]) and bool(calls_in(inner[0].body, "load"))


def _flattened(node: cst.CSTNode) -> cst.CSTNode:
    call = cst.ensure_type(node, cst.Call).with_changes(func=expression("tl.range"))
    return with_keyword(call, "flatten", cst.Name("True"))


REWRITE = Rewrite(
    "flatten_loops",
    "a counted loop, not told whether to be flattened, whose body is one counted loop with a load in it",
    (Bottleneck.LATENCY, Bottleneck.BARRIER, Bottleneck.TOO_FEW_PROGRAMS),
    ("load_ahead",),
    _edits,
)
