"""Offsets in 32 bits where no tensor of the problem is large enough to need 64: half the registers and instructions."""

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target
from kbtui.generation.rewrites.source import Replacement, Source
from kbtui.generation.rewrites.syntax import argument, calls_in, code_of, dotted, find_all

#: Elements of all tensors together, below which an offset into any of them fits in 31 bits with room for gaps.
_MOST_ELEMENTS = 1 << 30
_INDEX_CALLS = frozenset({"tl.program_id", "tl.num_programs", "tl.arange", "tl.cdiv", "tl.cast", "tl.minimum"})


def _edits(source: Source, target: Target) -> Iterator[Edit]:
    if target.most_elements >= _MOST_ELEMENTS:
        return
    for name, kernel in source.kernels.items():
        changes: dict[cst.CSTNode, Replacement] = {}
        for node in m.findall(kernel, m.Call(func=m.Attribute(attr=m.Name("to")))):
            call = cst.ensure_type(node, cst.Call)
            base = cst.ensure_type(call.func, cst.Attribute).value
            if [code_of(a.value) for a in call.args] == ["tl.int64"] and _is_index(base):
                changes[call] = _base_of_method
        for call in calls_in(kernel, "cast"):
            kind = argument(call, "dtype", 1)
            if kind is not None and code_of(kind) == "tl.int64" and _is_index(call.args[0].value):
                changes[call] = _first_argument
        if changes:
            yield Edit(source.code_with(changes), f"offsets of {name} in 32 bits", (("offsets", "int32"),))


def _is_index(node: cst.BaseExpression) -> bool:
    """Whether it is arithmetic on indices: not on what was loaded, made of floats, or is the bits of one."""
    calls = find_all(node, cst.Call)
    return (
        not find_all(node, cst.Float)
        and not any(argument(call, "bitcast") for call in calls)
        and all(dotted(c.func) in _INDEX_CALLS or m.matches(c.func, m.Attribute(attr=m.Name("to"))) for c in calls)
    )


def _base_of_method(node: cst.CSTNode) -> cst.CSTNode:
    return cst.ensure_type(cst.ensure_type(node, cst.Call).func, cst.Attribute).value


def _first_argument(node: cst.CSTNode) -> cst.CSTNode:
    value = cst.ensure_type(node, cst.Call).args[0].value
    if isinstance(value, (cst.BinaryOperation, cst.UnaryOperation, cst.IfExp)) and not value.lpar:
        return value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return value


REWRITE = Rewrite(
    "narrow_offsets",
    "an index cast to int64, in a problem whose tensors have fewer than 2**30 elements",
    (Bottleneck.OCCUPANCY_REGISTERS, Bottleneck.SPILLS, Bottleneck.COMPUTE),
    ("thirty_two_bit_indices", "index_once"),
    _edits,
)
