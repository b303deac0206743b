"""Loops of a kernel that load, as ``range`` or ``tl.range``: finding them and setting options. Pure."""

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from kbtui.generation.rewrites.rewrite import Edit
from kbtui.generation.rewrites.syntax import (
    Replacement,
    Source,
    calls_in,
    dotted,
    expression,
    with_keyword,
)


def loading_loops(kernel: cst.FunctionDef) -> list[cst.For]:
    """Innermost loops over ``range`` or ``tl.range`` with a load in them, in source order."""
    loops = [cst.ensure_type(loop, cst.For) for loop in m.findall(kernel, m.For())]
    return [
        loop for loop in loops if is_counted(loop) and calls_in(loop.body, "load") and not m.findall(loop.body, m.For())
    ]


def is_counted(loop: cst.For) -> bool:
    """Whether it runs over ``range`` or ``tl.range`` with one name as its index."""
    return (
        isinstance(loop.iter, cst.Call)
        and dotted(loop.iter.func) in ("range", "tl.range")
        and isinstance(loop.target, cst.Name)
    )


def edits_of_loop_option(source: Source, option: str, values: tuple[int, ...]) -> Iterator[Edit]:
    """Edits that set one option of ``tl.range`` in every loading loop of a kernel."""
    for name, kernel in source.kernels.items():
        iterators = [cst.ensure_type(loop.iter, cst.Call) for loop in loading_loops(kernel)]
        for value in values if iterators else ():
            changes: dict[cst.CSTNode, Replacement] = dict.fromkeys(iterators, _setter(option, value))
            yield Edit(source.code_with(changes), f"loops of {name} with {option}={value}", ((option, str(value)),))


def _setter(option: str, value: int) -> Replacement:
    def set_option(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call).with_changes(func=expression("tl.range"))
        return with_keyword(call, option, cst.Integer(str(value)))

    return set_option
