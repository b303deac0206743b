"""Sums in fp32: values loaded in half precision are widened before they are added up or exponentiated."""

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target
from kbtui.generation.rewrites.source import Replacement, Source
from kbtui.generation.rewrites.syntax import calls_in, dotted, expression, find_names

_HALF = frozenset({"float16", "bfloat16"})
_HALF_TYPES = frozenset({"tl.float16", "tl.bfloat16"})


def _edits(source: Source, target: Target) -> Iterator[Edit]:
    if not target.dtypes & _HALF:
        return
    for name, kernel in source.kernels.items():
        changes: dict[cst.CSTNode, Replacement] = dict.fromkeys(_narrow_loads(kernel), _widened)
        changes |= dict.fromkeys(_narrow_accumulators(kernel), expression("tl.float32"))
        if changes:
            yield Edit(source.code_with(changes), f"{name} sums in fp32", (("accumulate", "float32"),))


def _narrow_loads(kernel: cst.FunctionDef) -> list[cst.Call]:
    """Loads whose name is neither an operand of a dot or an address nor converted by the kernel itself."""
    kept = {n for call in calls_in(kernel, "dot", "load", "trans") for n in find_names(call)}
    converted = m.findall(kernel, m.Attribute(value=m.Name(), attr=m.Name("to")))
    kept |= {cst.ensure_type(cst.ensure_type(c, cst.Attribute).value, cst.Name).value for c in converted}
    found = []
    for node in m.findall(kernel, m.Assign(targets=[m.AssignTarget(target=m.Name())])):
        assign = cst.ensure_type(node, cst.Assign)
        name = cst.ensure_type(assign.targets[0].target, cst.Name).value
        if dotted(assign.value) == "tl.load" and isinstance(assign.value, cst.Call) and name not in kept:
            found.append(assign.value)
    return found


def _narrow_accumulators(kernel: cst.FunctionDef) -> list[cst.CSTNode]:
    """The dtype of every ``tl.zeros`` or ``tl.full`` in half precision."""
    made = calls_in(kernel, "zeros", "full")
    return [a.value for call in made for a in call.args if dotted(a.value) in _HALF_TYPES]


def _widened(node: cst.CSTNode) -> cst.CSTNode:
    return cst.Call(cst.Attribute(cst.ensure_type(node, cst.Call), cst.Name("to")), [cst.Arg(expression("tl.float32"))])


REWRITE = Rewrite(
    "accumulate_type",
    "a kernel that computes on half-precision values as they were loaded, outside of tl.dot",
    (Bottleneck.COMPUTE, Bottleneck.UNKNOWN),
    ("operands_as_they_come",),
    _edits,
)
