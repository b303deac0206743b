"""Questions about LibCST nodes, and small edits of them, that rewrites and repairs share. Pure."""

from collections.abc import Sequence
from dataclasses import fields
from functools import lru_cache
from typing import TypeVar

import libcst as cst

_T = TypeVar("_T", bound=cst.CSTNode)


def is_jit(function: cst.FunctionDef) -> bool:
    """Whether a decorator is ``triton.jit`` or ``jit``, called or not."""
    return any(dotted(d.decorator) in ("triton.jit", "jit") for d in function.decorators)


def dotted(node: cst.CSTNode) -> str:
    """``triton.jit`` of a name, an attribute, or a call of one; empty for anything else."""
    match node:
        case cst.Call(func=func):
            return dotted(func)
        case cst.Name(value=value):
            return value
        case cst.Attribute(value=value, attr=attr):
            return f"{dotted(value)}.{attr.value}"
        case _:
            return ""


@lru_cache(maxsize=4096)
def descendants(node: cst.CSTNode) -> tuple[cst.CSTNode, ...]:
    """A node and all below it, outermost first. Reads the fields: LibCST's own walks build new nodes as they go."""
    found: list[cst.CSTNode] = []
    waiting = [node]
    while waiting:
        here = waiting.pop()
        found.append(here)
        below: list[cst.CSTNode] = []
        for field in fields(here):
            value = getattr(here, field.name)
            if isinstance(value, cst.CSTNode):
                below.append(value)
            elif isinstance(value, (list, tuple)):
                below += [item for item in value if isinstance(item, cst.CSTNode)]
        waiting += reversed(below)
    return tuple(found)


def find_all(node: cst.CSTNode, kind: type[_T]) -> list[_T]:
    """Every node of a kind, the given one too."""
    return [found for found in descendants(node) if isinstance(found, kind)]


def find_names(node: cst.CSTNode) -> list[str]:
    return [name.value for name in find_all(node, cst.Name)]


def values_of(scope: cst.FunctionDef | cst.Module, name: str) -> list[cst.BaseExpression]:
    """Every expression assigned to a name in a scope, through tuple assignments too."""
    found: list[cst.BaseExpression] = []
    for assign in find_all(scope, cst.Assign):
        for target in assign.targets:
            found += _assigned(target.target, assign.value, name)
    return found


def _assigned(target: cst.BaseExpression, value: cst.BaseExpression, name: str) -> list[cst.BaseExpression]:
    match target, value:
        case cst.Name(value=bound), _ if bound == name:
            return [value]
        case cst.Tuple(), cst.IfExp(body=body, orelse=orelse):
            return _assigned(target, body, name) + _assigned(target, orelse, name)
        case cst.Tuple(elements=targets), cst.Tuple(elements=values) if len(targets) == len(values):
            return [v for t, x in zip(targets, values, strict=True) for v in _assigned(t.value, x.value, name)]
        case _:
            return []


def is_autotuned(kernel: cst.FunctionDef) -> bool:
    return any(dotted(d.decorator).endswith("autotune") for d in kernel.decorators)


def constexpr_params(kernel: cst.FunctionDef) -> list[str]:
    """Names annotated ``tl.constexpr``, in order."""
    params = [*kernel.params.params, *kernel.params.kwonly_params]
    annotated = [(p, p.annotation) for p in params if p.annotation is not None]
    return [p.name.value for p, a in annotated if dotted(a.annotation).split(".")[-1] == "constexpr"]


def param_names(function: cst.FunctionDef) -> list[str]:
    return [p.name.value for p in (*function.params.params, *function.params.kwonly_params)]


def assigned_names(node: cst.CSTNode) -> list[str]:
    """Names bound below a node, by assignment of any kind or by a loop."""
    found: list[str] = []
    for assigned in descendants(node):
        match assigned:
            case cst.Assign(targets=targets):
                found += [
                    name for t in targets if not isinstance(t.target, cst.Subscript) for name in find_names(t.target)
                ]
            case cst.AugAssign(target=target) | cst.AnnAssign(target=target) | cst.For(target=target):
                found += find_names(target)
    return found


def calls_in(node: cst.CSTNode, *names: str) -> list[cst.Call]:
    """Calls of ``tl.<name>`` below a node, in source order."""
    wanted = {f"tl.{name}" for name in names}
    return [call for call in find_all(node, cst.Call) if dotted(call.func) in wanted]


def argument(call: cst.Call, keyword: str, position: int | None = None) -> cst.BaseExpression | None:
    """A call's argument by keyword, or by position where no keyword names it."""
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == keyword:
            return arg.value
    positional = [a.value for a in call.args if a.keyword is None and not a.star]
    return positional[position] if position is not None and position < len(positional) else None


def with_keyword(call: cst.Call, name: str, value: cst.BaseExpression) -> cst.Call:
    """The call with a keyword set: altered where it is given, else put after the last argument in the same style."""
    keyword_arg = cst.Arg(value, cst.Name(name), equal=_tight())
    args = list(call.args)
    for index, arg in enumerate(args):
        if arg.keyword is not None and arg.keyword.value == name:
            args[index] = arg.with_changes(value=value)
            return call.with_changes(args=args)
    if args:
        keyword_arg = keyword_arg.with_changes(comma=args[-1].comma)
        args[-1] = args[-1].with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
    return call.with_changes(args=[*args, keyword_arg])


def without_keywords(call: cst.Call, names: Sequence[str]) -> cst.Call:
    args = [a for a in call.args if a.keyword is None or a.keyword.value not in names]
    if args and len(args) < len(call.args):
        args[-1] = args[-1].with_changes(comma=call.args[-1].comma)
    return call.with_changes(args=args)


def contains(node: cst.CSTNode, wanted: cst.CSTNode) -> bool:
    """Whether a very node, not one like it, is in a tree."""
    return any(found is wanted for found in descendants(node))


def code_of(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)


def expression(text: str) -> cst.BaseExpression:
    return cst.parse_expression(text)


def statement(text: str) -> cst.BaseStatement:
    parsed = cst.parse_statement(text)
    assert isinstance(parsed, cst.BaseStatement)
    return parsed


def _tight() -> cst.AssignEqual:
    return cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
