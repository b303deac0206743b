"""Offsets that are known to start at a multiple of the tile and to run on by one: the compiler is told so.

``p * T + tl.arange(0, T)`` begins at a multiple of T whatever p, so the hint is true; it lets loads be vectorised where
the compiler cannot see it (a modulo or a cast in between).
"""

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.loops import is_counted
from kbtui.generation.rewrites.passed import is_always
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target
from kbtui.generation.rewrites.source import Replacement, Source
from kbtui.generation.rewrites.syntax import calls_in, code_of, constexpr_params, dotted, expression, find_all


def _edits(source: Source, _target: Target) -> Iterator[Edit]:
    for name, kernel in source.kernels.items():
        if calls_in(kernel, "multiple_of", "max_contiguous"):
            continue
        starts = _loop_indices(kernel)
        single = {n for n in constexpr_params(kernel) if is_always(source, name, cst.Name(n), 1)}
        hinted: dict[cst.CSTNode, Replacement] = {}
        for node in m.findall(kernel, m.Assign(targets=[m.AssignTarget(target=m.Name())])):
            value = cst.ensure_type(node, cst.Assign).value
            shape = _hint(value, starts, single)
            if shape is not None:
                hinted[value] = expression(f"tl.max_contiguous(tl.multiple_of({code_of(value)}, {shape}), {shape})")
        if hinted:
            yield Edit(source.code_with(hinted), f"offsets of {name} with alignment hints", ())


def _loop_indices(kernel: cst.FunctionDef) -> set[tuple[str, str]]:
    """(index, step) of every loop over ``range(0, n, step)``: the index is a multiple of the step."""
    found = set()
    for node in find_all(kernel, cst.For):
        loop = cst.ensure_type(node, cst.For)
        if is_counted(loop):
            args = cst.ensure_type(loop.iter, cst.Call).args
            if len(args) >= 3 and code_of(args[0].value) == "0" and args[2].keyword is None:
                found.add((code_of(loop.target), code_of(args[2].value)))
    return found


def _hint(value: cst.BaseExpression, starts: set[tuple[str, str]], single: set[str]) -> str | None:
    """The hint's values for ``multiple of T + arange(0, T)``, one an axis; None for others, and where T is 1."""
    match value:
        case cst.BinaryOperation(left=left, operator=cst.Add(), right=right):
            for base, lanes in ((left, right), (right, left)):
                tile, shape = _lanes(lanes)
                if (
                    tile is not None
                    and tile not in single
                    and (_is_multiple(base, tile) or (code_of(base), tile) in starts)
                ):
                    return shape
    return None


def _lanes(node: cst.BaseExpression) -> tuple[str | None, str]:
    """(T, hint) of ``tl.arange(0, T)``, indexed with None or not."""
    match node:
        case cst.Call(func=func, args=[cst.Arg(value=cst.Integer(value="0")), cst.Arg(value=stop)]):
            tile = code_of(stop) if isinstance(stop, (cst.Name, cst.Integer)) else None
            return (tile, str(tile)) if dotted(func) == "tl.arange" else (None, "")
        case cst.Subscript(value=value, slice=[first, second]):
            tile, _ = _lanes(value)
            sides = ["1" if m.matches(s, m.SubscriptElement(m.Index(m.Name("None")))) else tile
                     for s in (first, second)]  # fmt: skip
            return tile, f"({sides[0]}, {sides[1]})"
        case _:
            return None, ""


def _is_multiple(node: cst.BaseExpression, tile: str) -> bool:
    match node:
        case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right):
            return tile in (code_of(left), code_of(right))
        case cst.Call(func=cst.Attribute(value=value, attr=cst.Name(value="to"))):
            return _is_multiple(value, tile)
        case _:
            return False


REWRITE = Rewrite(
    "alignment_hints",
    "an assignment of `p * T + tl.arange(0, T)`, or of `s + tl.arange(0, T)` in `for s in range(0, n, T)`",
    (Bottleneck.UNCOALESCED, Bottleneck.DRAM, Bottleneck.LATENCY),
    ("coalesce_along_the_unit_stride", "long_side_along_the_unit_stride"),
    _edits,
)
