"""What the rewrites need to know of a Triton source's syntax tree: its kernels, launches and constants. Pure."""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TypeVar

import libcst as cst
import libcst.matchers as m

from kbtui.generation.playbook.constants import Value, read_constants
from kbtui.generation.rewrites.conditions import decided

Node = cst.CSTNode
_T = TypeVar("_T", bound=cst.CSTNode)
#: A replacement for a node, or what makes one of the node as it is after its children were replaced.
Replacement = (
    cst.CSTNode | cst.RemovalSentinel | cst.FlattenSentinel[cst.BaseStatement] | Callable[[cst.CSTNode], cst.CSTNode]
)


@dataclass(frozen=True, slots=True)
class Launch:
    """A call ``kernel[grid](...)`` in a host function."""

    kernel: str
    call: cst.Call
    host: cst.FunctionDef

    @property
    def grid(self) -> cst.BaseExpression:
        subscript = cst.ensure_type(self.call.func, cst.Subscript)
        index = subscript.slice[0].slice
        if len(subscript.slice) > 1:
            return cst.Tuple([cst.Element(cst.ensure_type(s.slice, cst.Index).value) for s in subscript.slice])
        return cst.ensure_type(index, cst.Index).value

    def keyword(self, name: str) -> cst.Arg | None:
        return next((a for a in self.call.args if a.keyword is not None and a.keyword.value == name), None)


@dataclass(frozen=True, slots=True)
class Source:
    """A parsed module with its jit kernels (by name), host functions and methods, and launches, in source order.

    Launches under a condition that the module's constants decide against are left out, and so are kernels that only
    such launches use: those for a later chip in a source made for an earlier one. An edit of them changes nothing.
    """

    module: cst.Module
    kernels: Mapping[str, cst.FunctionDef]
    hosts: tuple[cst.FunctionDef, ...]
    launches: tuple[Launch, ...]

    def code_with(self, changes: Mapping[Node, Replacement]) -> str:
        """The source's text with the given nodes replaced."""
        changed = self.module.visit(_Replace(changes))
        return cst.ensure_type(changed, cst.Module).code


@lru_cache(maxsize=32)
def parse(source: str) -> Source | None:
    """The parsed source, or None where it has no syntax."""
    try:
        ast.parse(source)
        module = cst.parse_module(source)
    except (cst.ParserSyntaxError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    scopes = [module.body, *(c.body.body for c in module.body if isinstance(c, cst.ClassDef))]
    functions = [f for scope in scopes for f in scope if isinstance(f, cst.FunctionDef)]
    kernels = {f.name.value: f for f in functions if is_jit(f)}
    hosts = tuple(f for f in functions if not is_jit(f))
    launches = tuple(launch for host in hosts for launch in _launches(host, kernels))
    constants = read_constants(source)
    never = {call for host in hosts for call in _never_made(host, constants)}
    made = tuple(launch for launch in launches if launch.call not in never)
    return Source(module, _used(kernels, launches, made), hosts, made)


def _never_made(host: cst.FunctionDef, constants: Mapping[str, Value]) -> Iterator[cst.Call]:
    """Calls in branches of a host function that the module's constants rule out."""
    choices = find_all(host, cst.If) if constants else []
    own = {*param_names(host), *assigned_names(host)} if choices else set()
    known = {name: value for name, value in constants.items() if name not in own}
    for choice in choices:
        holds = decided(code_of(choice.test), known)
        branch = choice.body if holds is False else choice.orelse if holds else None
        yield from find_all(branch, cst.Call) if branch is not None else ()


def _used(
    kernels: Mapping[str, cst.FunctionDef], launches: Sequence[Launch], made: Sequence[Launch]
) -> dict[str, cst.FunctionDef]:
    """All kernels but those that are launched only where that never happens, and that no other kernel calls."""
    unused = {launch.kernel for launch in launches} - {launch.kernel for launch in made}
    called = {n for name, k in kernels.items() if name not in unused for n in find_names(k.body)} if unused else set()
    return {name: kernel for name, kernel in kernels.items() if name not in unused or name in called}


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


def _launches(host: cst.FunctionDef, kernels: Mapping[str, cst.FunctionDef]) -> Iterator[Launch]:
    """Launches of known kernels; one through a local name bound to a choice of kernels names the first of them."""
    for call in find_all(host, cst.Call):
        if not m.matches(call, m.Call(func=m.Subscript(value=m.Name()))):
            continue
        name = cst.ensure_type(cst.ensure_type(call.func, cst.Subscript).value, cst.Name).value
        if name in kernels:
            yield Launch(name, call, host)
            continue
        chosen = [n for v in values_of(host, name) for n in find_names(v) if n in kernels]
        if chosen:
            yield Launch(chosen[0], call, host)


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


def integers_behind(
    source: Source, launch: Launch, value: cst.BaseExpression, through: frozenset[str] = frozenset()
) -> list[cst.Integer]:
    """The integer literals a launch's argument comes from: itself, or those its local or module name is bound to.

    Empty where it is computed (``triton.next_power_of_2(n)``), so that nothing is changed behind a formula's back.
    ``through`` are names already followed: one bound to itself is no number.
    """
    match value:
        case cst.Integer():
            return [value]
        case cst.IfExp(body=body, orelse=orelse):
            parts = [integers_behind(source, launch, branch, through) for branch in (body, orelse)]
            return [i for part in parts for i in part] if all(parts) else []
        case cst.Name(value=name) if name not in through:
            bound = values_of(launch.host, name) or values_of(source.module, name)
            parts = [integers_behind(source, launch, b, through | {name}) for b in bound]
            return [i for part in parts for i in part] if all(parts) else []
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


def arguments_of(source: Source, launch: Launch) -> dict[str, cst.BaseExpression]:
    """What a launch passes for the kernel's parameters: by position up to a ``*args``, and by name."""
    given: dict[str, cst.BaseExpression] = {}
    names = param_names(source.kernels[launch.kernel])
    for index, arg in enumerate(launch.call.args):
        if arg.star:
            break
        if arg.keyword is None and index < len(names):
            given[names[index]] = arg.value
    return given | {a.keyword.value: a.value for a in launch.call.args if a.keyword is not None}


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


class _Replace(cst.CSTTransformer):
    """Swaps nodes found by identity; a callable gets the node with its children already swapped."""

    def __init__(self, changes: Mapping[Node, Replacement]) -> None:
        super().__init__()
        self.changes = changes

    def on_leave(self, original_node, updated_node):  # type: ignore[no-untyped-def]
        change = self.changes.get(original_node)
        if change is None:
            return super().on_leave(original_node, updated_node)
        if isinstance(change, (cst.CSTNode, cst.RemovalSentinel, cst.FlattenSentinel)):
            return change
        return change(updated_node)
