"""Fewer programs, each doing the work of several: the kernel's body in a loop over what were program ids. Pure.

Only kernels of a one-dimensional grid that never return early. The loop's index takes the place of
``tl.program_id(0)``; parameters that the body changes are copied for each turn.
"""

from collections.abc import Sequence

import libcst as cst

from kbtui.generation.rewrites.source import Launch, Replacement, Source
from kbtui.generation.rewrites.syntax import (
    assigned_names,
    calls_in,
    code_of,
    expression,
    find_all,
    find_names,
    is_autotuned,
    param_names,
    statement,
    values_of,
    with_keyword,
)

_PID, _COUNT, _TURN = "pid_here", "n_programs", "turn"


def can_regrid(source: Source, name: str) -> bool:
    """Whether the kernel and all its launches have the form that can be looped over."""
    kernel = source.kernels[name]
    launches = [launch for launch in source.launches if launch.kernel == name]
    used = set(find_names(source.module))
    return (
        bool(launches)
        and not is_autotuned(kernel)
        and not {_PID, _COUNT, _TURN} & used
        and not find_all(kernel, cst.Return)
        and not calls_in(kernel, "num_programs", "atomic_add")
        and all(grid_size(launch) is not None for launch in launches)
        and _reads_only_axis_0(kernel)
        and all(_names_one_kernel(source, launch) for launch in launches)
    )


def _names_one_kernel(source: Source, launch: Launch) -> bool:
    """A launch through a local name may be of another kernel, which takes no count."""
    subscript = cst.ensure_type(launch.call.func, cst.Subscript)
    return cst.ensure_type(subscript.value, cst.Name).value in source.kernels


def _reads_only_axis_0(kernel: cst.FunctionDef) -> bool:
    ids = calls_in(kernel, "program_id")
    return bool(ids) and all(code_of(c.args[0].value) == "0" for c in ids)


def grid_size(launch: Launch) -> cst.BaseExpression | None:
    """The number of programs of a one-dimensional grid written at the launch or in a local name."""
    grid = launch.grid
    if isinstance(grid, cst.Name):
        bound = values_of(launch.host, grid.value)
        grid = bound[0] if len(bound) == 1 else grid
    if isinstance(grid, cst.Tuple) and len(grid.elements) == 1:
        return grid.elements[0].value
    return None


def regridded(source: Source, name: str, turns: str, fewer: str) -> str:
    """The source with the body looped over ``turns``; ``fewer`` is the new grid's size, ``{n}`` the old one's."""
    kernel = source.kernels[name]
    body = cst.ensure_type(kernel.body, cst.IndentedBlock)
    changed_params = [p for p in param_names(kernel) if p in assigned_names(body)]
    renamed = {p: f"{p}_here" for p in changed_params}
    changes: dict[cst.CSTNode, Replacement] = {}
    for call in calls_in(kernel, "program_id"):
        changes[call] = cst.Name(_PID)
    keywords = [arg.keyword for arg in find_all(body, cst.Arg) if arg.keyword is not None]
    for name_node in find_all(body, cst.Name):
        if name_node.value in renamed and name_node not in keywords:
            changes[name_node] = cst.Name(renamed[name_node.value])
    copies = [statement(f"{new} = {old}") for old, new in renamed.items()]
    changes[body] = _looped(body, kernel.get_docstring() is not None, turns, copies)
    changes[kernel.params] = _with_count
    for launch in source.launches:
        if launch.kernel == name:
            changes[launch.call] = _fewer(launch, fewer)
    return source.code_with(changes)


def _looped(
    body: cst.IndentedBlock, has_docstring: bool, turns: str, copies: Sequence[cst.BaseStatement]
) -> Replacement:
    def loop(node: cst.CSTNode) -> cst.CSTNode:
        block = cst.ensure_type(node, cst.IndentedBlock)
        at = 1 if has_docstring else 0
        # Under the interpreter a loop's index is a plain number; a cast makes a tensor of it.
        first = statement(f"{_PID} = tl.cast({_TURN}, tl.int32)")
        inner = cst.IndentedBlock([first, *copies, *block.body[at:]], footer=block.footer)
        looped = cst.For(cst.Name(_TURN), expression(turns), inner)
        return block.with_changes(body=[*block.body[:at], looped], footer=[])

    return loop


def _with_count(node: cst.CSTNode) -> cst.CSTNode:
    params = cst.ensure_type(node, cst.Parameters)
    default = cst.Integer("1") if params.params and params.params[-1].default is not None else None
    count = cst.Param(cst.Name(_COUNT), default=default)
    last = params.params[-1].with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
    comma = params.params[-1].comma
    return params.with_changes(params=[*params.params[:-1], last, count.with_changes(comma=comma)])


def _fewer(launch: Launch, fewer: str) -> Replacement:
    size = grid_size(launch)
    assert size is not None
    n = code_of(size)

    def change(node: cst.CSTNode) -> cst.CSTNode:
        call = with_keyword(cst.ensure_type(node, cst.Call), _COUNT, expression(n))
        subscript = cst.ensure_type(call.func, cst.Subscript)
        grid = cst.SubscriptElement(cst.Index(expression(f"({fewer.format(n=n)},)")))
        return call.with_changes(func=subscript.with_changes(slice=[grid]))

    return change
