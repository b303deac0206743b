"""A Triton source as the rewrites see it: its kernels, its launches, and what a launch passes. Pure."""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import libcst as cst
import libcst.matchers as m

from kbtui.generation.playbook.constants import Value, read_constants
from kbtui.generation.rewrites.conditions import decided
from kbtui.generation.rewrites.syntax import (
    assigned_names,
    code_of,
    find_all,
    find_names,
    is_jit,
    param_names,
    values_of,
)

Node = cst.CSTNode
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
