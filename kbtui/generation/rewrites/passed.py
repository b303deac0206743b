"""What an expression in a kernel may be, as far as the kernel's launches tell. Pure.

An edit that sets what is so already changes nothing: rewrites ask here before they offer one.
"""

from collections.abc import Iterator

import libcst as cst

from kbtui.generation.rewrites.source import Launch, Source, arguments_of
from kbtui.generation.rewrites.syntax import dotted, values_of


def integers_passed(source: Source, kernel: str, value: cst.BaseExpression | None) -> frozenset[int]:
    """Integers it may be: a literal's, or those that its launches bind its name to; empty where nothing is known.

    Of a choice or a ``min`` of several, all that are known.
    """
    leaves = _passed(source, kernel, value)
    return frozenset(int(leaf.value, 0) for leaf in leaves if isinstance(leaf, cst.Integer))


def is_always(source: Source, kernel: str, value: cst.BaseExpression, integer: int) -> bool:
    """Whether its launches bind it to this integer and to nothing else, known or unknown."""
    leaves = list(_passed(source, kernel, value))
    return bool(leaves) and all(isinstance(leaf, cst.Integer) and int(leaf.value, 0) == integer for leaf in leaves)


def texts_passed(source: Source, kernel: str, value: cst.BaseExpression | None) -> frozenset[str]:
    """Texts it may be; empty where nothing is known."""
    leaves = _passed(source, kernel, value)
    return frozenset(str(leaf.evaluated_value) for leaf in leaves if isinstance(leaf, cst.SimpleString))


def _passed(source: Source, kernel: str, value: cst.BaseExpression | None) -> Iterator[cst.BaseExpression]:
    if not isinstance(value, cst.Name):
        yield from () if value is None else (value,)
        return
    for launch in source.launches:
        given = arguments_of(source, launch).get(value.value) if launch.kernel == kernel else None
        if given is not None:
            yield from _leaves(source, launch, given, frozenset())


def _leaves(
    source: Source, launch: Launch, value: cst.BaseExpression, through: frozenset[str]
) -> Iterator[cst.BaseExpression]:
    """What a launch's argument may be in the end; ``through`` are names followed already."""
    parts: list[cst.BaseExpression] = []
    match value:
        case cst.IfExp(body=body, orelse=orelse):
            parts = [body, orelse]
        case cst.Call(args=args) if dotted(value.func) in ("min", "max"):
            parts = [arg.value for arg in args]
        case cst.Name(value=name) if name not in through:
            parts = values_of(launch.host, name) or values_of(source.module, name)
            through |= {name}
        case _:
            yield value
    for part in parts:
        yield from _leaves(source, launch, part, through)
