"""Full tiles without masks, the last one with them.

``for s in range(0, n, T)`` whose loads are masked by ``s + arange(0, T) < n`` becomes two loops: whole tiles up to
``n // T * T``, where that comparison is true and is left out, then the rest as it was.
"""

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target
from kbtui.generation.rewrites.source import Replacement, Source
from kbtui.generation.rewrites.syntax import argument, contains, dotted, expression, find_all, values_of


def _edits(source: Source, _target: Target) -> Iterator[Edit]:
    for name, kernel in source.kernels.items():
        loops = find_all(kernel, cst.For)
        peeled: dict[cst.CSTNode, Replacement] = {
            loop: two for loop in loops if (two := _peeled(kernel, loop)) is not None
        }
        if peeled:
            yield Edit(source.code_with(peeled), f"full tiles of {name} without masks", ())


def _peeled(kernel: cst.FunctionDef, loop: cst.For) -> cst.FlattenSentinel[cst.BaseStatement] | None:
    """The two loops, or None where the loop is of another form or nothing in it is masked by its own bound."""
    span = _span(loop)
    if span is None:
        return None
    index, stop, step = span
    always = _AlwaysTrue(kernel, loop, index, stop, step)
    full = loop.with_changes(body=loop.body.visit(_Unmask(always)))
    if full.body.deep_equals(loop.body):
        return None
    whole = expression(f"{stop} // {step} * {step}")
    main = full.with_changes(iter=_with_bounds(loop, stop=whole))
    rest = loop.with_changes(
        iter=_with_bounds(loop, start=whole), body=loop.body.deep_clone(), target=loop.target.deep_clone(),
        leading_lines=[],
    )  # fmt: skip
    return cst.FlattenSentinel([main, rest])


def _span(loop: cst.For) -> tuple[str, str, str] | None:
    """(index, stop, step) of ``for index in range(0, stop, step)`` with plain names."""
    match loop:
        case cst.For(
            target=cst.Name(value=index),
            iter=cst.Call(
                func=func,
                args=[
                    cst.Arg(value=cst.Integer(value="0")),
                    cst.Arg(value=cst.Name(value=stop)),
                    cst.Arg(value=cst.Name(value=step)),
                    *_,
                ],
            ),
            orelse=None,
        ) if dotted(func) in ("range", "tl.range"):
            return index, stop, step
        case _:
            return None


def _with_bounds(loop: cst.For, start: cst.BaseExpression | None = None, stop: cst.BaseExpression | None = None):  # type: ignore[no-untyped-def]
    call = cst.ensure_type(loop.iter, cst.Call)
    args = [arg.deep_clone() for arg in call.args]
    args[0] = args[0].with_changes(value=start) if start is not None else args[0]
    args[1] = args[1].with_changes(value=stop) if stop is not None else args[1]
    return call.with_changes(func=call.func.deep_clone(), args=args)


class _AlwaysTrue:
    """Whether a condition in the loop holds for every whole tile."""

    def __init__(self, kernel: cst.FunctionDef, loop: cst.For, index: str, stop: str, step: str) -> None:
        self.index, self.stop, self.step = index, stop, step
        self.lanes: set[str] = set()
        self.positions: set[str] = set()
        self.conditions: set[str] = set()
        self.lanes = {n for n in _assigned_names(kernel) if all(map(self._is_lanes, values_of(kernel, n)))}
        once = _assigned_once(kernel, loop)
        self.positions = {name for name, value in once.items() if self._is_position(value)}
        self.conditions = {name for name, value in once.items() if self(value)}

    def __call__(self, node: cst.CSTNode) -> bool:
        match node:
            case cst.Name(value=name):
                return name in self.conditions
            case cst.Subscript(value=value):
                return self(value)
            case cst.Comparison(
                left=left,
                comparisons=[cst.ComparisonTarget(operator=cst.LessThan(), comparator=cst.Name(value=bound))],
            ):
                return bound == self.stop and self._is_position(left)
            case _:
                return False

    def _is_position(self, node: cst.BaseExpression) -> bool:
        """``index + lanes``, indexed with None or not, or a name for it."""
        match node:
            case cst.Subscript(value=value):
                return self._is_position(value)
            case cst.Name(value=name):
                return name in self.positions
            case cst.BinaryOperation(left=left, operator=cst.Add(), right=right):
                return any(isinstance(a, cst.Name) and a.value == self.index and self._is_lanes(b)
                           for a, b in ((left, right), (right, left)))  # fmt: skip
            case _:
                return False

    def _is_lanes(self, node: cst.BaseExpression) -> bool:
        """``tl.arange(0, step)``, indexed with None or not, or a name for it."""
        match node:
            case cst.Subscript(value=value):
                return self._is_lanes(value)
            case cst.Name(value=name):
                return name in self.lanes
            case cst.Call(func=func, args=[cst.Arg(value=cst.Integer(value="0")), cst.Arg(value=cst.Name(value=n))]):
                return dotted(func) == "tl.arange" and n == self.step
            case _:
                return False


class _Unmask(cst.CSTTransformer):
    """Leaves out conditions that always hold: in masks, conjunctions and tl.where."""

    def __init__(self, always: _AlwaysTrue) -> None:
        super().__init__()
        self.always = always

    def leave_BinaryOperation(  # noqa: N802
        self, original_node: cst.BinaryOperation, updated_node: cst.BinaryOperation
    ) -> cst.BaseExpression:
        if not isinstance(original_node.operator, cst.BitAnd):
            return updated_node
        if self.always(original_node.left):
            return updated_node.right
        return updated_node.left if self.always(original_node.right) else updated_node

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:  # noqa: N802
        name = dotted(original_node.func)
        if name == "tl.where" and len(original_node.args) == 3 and self.always(original_node.args[0].value):
            return updated_node.args[1].value
        mask = argument(original_node, "mask")
        if name in ("tl.load", "tl.store") and mask is not None and self.always(mask):
            kept = [a for a in updated_node.args if a.keyword is None or a.keyword.value not in ("mask", "other")]
            kept[-1] = kept[-1].with_changes(comma=updated_node.args[-1].comma)
            return updated_node.with_changes(args=kept)
        return updated_node


def _assigned_once(kernel: cst.FunctionDef, loop: cst.For) -> dict[str, cst.BaseExpression]:
    """What the loop assigns to each name that it assigns once."""
    names = _assigned_names(loop.body)
    values = {n: [v for v in values_of(kernel, n) if contains(loop.body, v)] for n in names}
    return {name: found[0] for name, found in values.items() if len(found) == 1}


def _assigned_names(node: cst.CSTNode) -> list[str]:
    targets = [cst.ensure_type(t, cst.AssignTarget).target for t in m.findall(node, m.AssignTarget(target=m.Name()))]
    return [cst.ensure_type(t, cst.Name).value for t in targets]


REWRITE = Rewrite(
    "peel_masked_tail",
    "a loop `for s in range(0, n, T)` with loads masked by `s + tl.arange(0, T) < n`",
    (Bottleneck.UNCOALESCED, Bottleneck.COMPUTE, Bottleneck.LATENCY),
    ("no_masks_inside",),
    _edits,
)
