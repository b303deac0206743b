"""Two passes fused into one: a loop for the maximum and one for the sum of exponentials become one online loop.

m' = max(m, max x), s' = s exp(m - m') + sum exp(x - m') (Milakov and Gimelshein 2018, arXiv:1805.02867).
"""

from collections.abc import Iterator, Sequence

import libcst as cst
import libcst.matchers as m

from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target
from kbtui.generation.rewrites.source import Replacement, Source
from kbtui.generation.rewrites.syntax import code_of, dotted, find_names, statement

_NEW, _SHIFT = "new_highest", "shift"
_EXPONENTIALS = ("tl.exp", "tl.exp2", "tl.math.exp", "tl.math.exp2")


def _edits(source: Source, _target: Target) -> Iterator[Edit]:
    for name, kernel in source.kernels.items():
        if {_NEW, _SHIFT} & set(find_names(kernel)):
            continue
        body = cst.ensure_type(kernel.body, cst.IndentedBlock).body
        for first, second in _pairs(body):
            fused = _fused(first, second)
            if fused is not None:
                changes: dict[cst.CSTNode, Replacement] = {first: cst.RemovalSentinel.REMOVE, second: fused}
                yield Edit(source.code_with(changes), f"maximum and sum of {name} in one online pass", ())


def _pairs(body: Sequence[cst.BaseStatement | cst.BaseSmallStatement]) -> Iterator[tuple[cst.For, cst.For]]:
    """Loops that follow each other with nothing but beginnings of sums between them."""
    last: cst.For | None = None
    for line in body:
        if isinstance(line, cst.For):
            if last is not None:
                yield last, line
            last = line
        elif last is not None and not _begins_a_sum(line):
            last = None


def _begins_a_sum(line: cst.CSTNode) -> bool:
    return m.matches(line, m.SimpleStatementLine(body=[m.Assign(value=m.Float() | m.Call())])) and not m.findall(
        line, m.Call(func=m.Attribute(attr=m.Name("load") | m.Name("sum") | m.Name("max")))
    )


def _fused(first: cst.For, second: cst.For) -> cst.For | None:
    """The online loop, or None where the two are of another form."""
    if not (first.iter.deep_equals(second.iter) and first.target.deep_equals(second.target)):
        return None
    ahead, behind = _lines(first), _lines(second)
    if not ahead or len(ahead) != len(behind) or any(a != b for a, b in zip(ahead[:-1], behind[:-1], strict=True)):
        return None
    found, added = _maximum(ahead[-1]), _sum(behind[-1])
    if found is None or added is None or found[0] not in find_names(cst.parse_expression(added[1])):
        return None
    (highest, of), (total, what) = found, added
    here = _with_name(what, highest, _SHIFT)
    shrink = _exponential_of(what, highest)
    if shrink is None:
        return None
    new = [f"{_NEW} = {of}", f"{_SHIFT} = tl.where({_NEW} == -float('inf'), 0.0, {_NEW})",
           f"{total} = {total} * {shrink} + {here}", f"{highest} = {_NEW}"]  # fmt: skip
    body = cst.ensure_type(second.body, cst.IndentedBlock)
    return second.with_changes(body=body.with_changes(body=[*body.body[:-1], *map(statement, new)]))


def _lines(loop: cst.For) -> list[str]:
    body = loop.body.body if isinstance(loop.body, cst.IndentedBlock) else ()
    return [code_of(line).strip().split("#")[0].strip() for line in body]


def _maximum(line: str) -> tuple[str, str] | None:
    """(m, the new maximum) of ``m = tl.maximum(m, …)``."""
    assign = _assignment(line)
    if assign is None or not isinstance(assign, cst.Assign) or not m.matches(assign.value, m.Call()):
        return None
    target, call = assign.targets[0].target, cst.ensure_type(assign.value, cst.Call)
    if dotted(call.func) != "tl.maximum" or not isinstance(target, cst.Name):
        return None
    return (target.value, code_of(call)) if target.value in [code_of(a.value) for a in call.args] else None


def _sum(line: str) -> tuple[str, str] | None:
    """(s, what is added) of ``s += …``."""
    assign = _assignment(line)
    if not isinstance(assign, cst.AugAssign) or not isinstance(assign.operator, cst.AddAssign):
        return None
    return (code_of(assign.target), code_of(assign.value)) if isinstance(assign.target, cst.Name) else None


def _assignment(line: str) -> cst.BaseSmallStatement | None:
    parsed = cst.parse_module(line + "\n").body
    return parsed[0].body[0] if len(parsed) == 1 and isinstance(parsed[0], cst.SimpleStatementLine) else None


def _exponential_of(what: str, highest: str) -> str | None:
    """The exponential in an expression, of the old maximum less the new one: ``tl.exp(x - m)`` gives
    ``tl.exp(m - shift)``."""
    for node in m.findall(cst.parse_expression(what), m.Call()):
        call = cst.ensure_type(node, cst.Call)
        if dotted(call.func) in _EXPONENTIALS:
            for found in m.findall(call, m.BinaryOperation(operator=m.Subtract())):
                difference = cst.ensure_type(found, cst.BinaryOperation)
                right = difference.right.value if isinstance(difference.right, cst.Subscript) else difference.right
                if code_of(right) == highest:
                    old = difference.with_changes(left=cst.Name(highest), right=cst.Name(_SHIFT))
                    return code_of(call.deep_replace(found, old))
    return None


def _with_name(what: str, old: str, new: str) -> str:
    tree = cst.parse_expression(what)
    for node in m.findall(tree, m.Name(old)):
        tree = tree.deep_replace(node, cst.Name(new))
    return code_of(tree)


REWRITE = Rewrite(
    "online_pass",
    "a loop for a maximum followed by the same loop for a sum of exponentials of what is below it",
    (Bottleneck.EXTRA_PASSES, Bottleneck.DRAM),
    ("online_max_and_sum",),
    _edits,
)
