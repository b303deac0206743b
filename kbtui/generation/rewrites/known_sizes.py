"""Sizes compiled in: a size of the input that a kernel takes as a number becomes ``tl.constexpr``.

Divisions by it become multiplications, loops over it get a known count and can be unrolled, and masks that always hold
are dropped. A kernel is compiled for every size it meets, which is what the problem's shapes are.
"""

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target
from kbtui.generation.rewrites.source import Launch, Replacement, Source, arguments_of
from kbtui.generation.rewrites.syntax import assigned_names, expression, find_all, find_names


def _edits(source: Source, _target: Target) -> Iterator[Edit]:
    for name, kernel in source.kernels.items():
        launches = [launch for launch in source.launches if launch.kernel == name]
        if not launches:
            continue
        sizes = set.intersection(*({p for p, v in arguments_of(source, x).items() if _is_size(x, v)} for x in launches))
        params = [p for p in kernel.params.params if p.name.value in sizes and p.annotation is None]
        params = [p for p in params if _can_be_known(kernel, p.name.value)]
        if params and not _converts_one(kernel, {p.name.value for p in params}):
            changes: dict[cst.CSTNode, Replacement] = dict.fromkeys(params, _annotated)
            told = ", ".join(p.name.value for p in params)
            yield Edit(source.code_with(changes), f"{told} of {name} compiled in", (("known", told),))


def _annotated(node: cst.CSTNode) -> cst.CSTNode:
    return cst.ensure_type(node, cst.Param).with_changes(annotation=cst.Annotation(expression("tl.constexpr")))


def _is_size(launch: Launch, value: cst.BaseExpression) -> bool:
    """Whether it is an element count: ``x.shape[0]``, ``x.numel()``, or a name that a shape was unpacked into."""
    match value:
        case cst.Subscript(value=cst.Attribute(attr=cst.Name(value="shape"))):
            return True
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="numel" | "size"))):
            return True
        case cst.Name(value=name):
            return name in _unpacked_from_shapes(launch.host)
        case _:
            return False


def _unpacked_from_shapes(host: cst.FunctionDef) -> set[str]:
    found: set[str] = set()
    for node in find_all(host, cst.Assign):
        assign = cst.ensure_type(node, cst.Assign)
        if m.findall(assign.value, m.Attribute(attr=m.Name("shape"))) and not find_all(assign.value, cst.Call):
            found |= {n for t in assign.targets for n in find_names(t.target)}
        if m.matches(assign.value, m.Call(func=m.Attribute(attr=m.Name("numel")))):
            found |= {n for t in assign.targets for n in find_names(t.target)}
    return found


def _can_be_known(kernel: cst.FunctionDef, param: str) -> bool:
    """A constant has no methods (``n.to(...)``) and cannot be assigned to."""
    methods = m.findall(kernel.body, m.Attribute(value=m.Name(param)))
    return not methods and param not in assigned_names(kernel)


def _converts_one(kernel: cst.FunctionDef, known: set[str]) -> bool:
    """Whether something made of known sizes alone is converted: it would be a constant, without ``.to``."""
    for node in m.findall(kernel, m.Call(func=m.Attribute(attr=m.Name("to")))):
        base = cst.ensure_type(cst.ensure_type(node, cst.Call).func, cst.Attribute).value
        names = [n for n in find_names(base) if n != "tl"]
        if names and all(n in known or n.isupper() for n in names):
            return True
    return False


REWRITE = Rewrite(
    "known_sizes",
    "a kernel that takes a size of an input as a plain number",
    (Bottleneck.COMPUTE, Bottleneck.UNCOALESCED, Bottleneck.LATENCY, Bottleneck.OCCUPANCY_REGISTERS),
    ("index_once",),
    _edits,
)
