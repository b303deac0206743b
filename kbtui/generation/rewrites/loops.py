"""Loops of a kernel that load, as ``range`` or ``tl.range``: finding them and setting options. Pure."""

from collections.abc import Iterator, Sequence

import libcst as cst

from kbtui.generation.rewrites.passed import integers_passed
from kbtui.generation.rewrites.rewrite import Edit
from kbtui.generation.rewrites.source import Replacement, Source
from kbtui.generation.rewrites.syntax import (
    argument,
    assigned_names,
    calls_in,
    code_of,
    dotted,
    expression,
    find_all,
    find_names,
    with_keyword,
)


def loading_loops(kernel: cst.FunctionDef) -> list[cst.For]:
    """Innermost loops over ``range`` or ``tl.range`` with a load in them, in source order."""
    loops = find_all(kernel, cst.For)
    return [
        loop for loop in loops if is_counted(loop) and calls_in(loop.body, "load") and not find_all(loop.body, cst.For)
    ]


def is_counted(loop: cst.For) -> bool:
    """Whether it runs over ``range`` or ``tl.range`` with one name as its index."""
    return (
        isinstance(loop.iter, cst.Call)
        and dotted(loop.iter.func) in ("range", "tl.range")
        and isinstance(loop.target, cst.Name)
    )


def edits_of_loop_option(source: Source, option: str, values: tuple[int, ...]) -> Iterator[Edit]:
    """Edits that set one option of ``tl.range`` in every loading loop of a kernel to what it is not in all of them."""
    for name, kernel in source.kernels.items():
        iterators = [cst.ensure_type(loop.iter, cst.Call) for loop in loading_loops(kernel)]
        present = [integers_passed(source, name, argument(iterator, option)) for iterator in iterators]
        for value in (v for v in values if not all(v in integers for integers in present)):
            changes: dict[cst.CSTNode, Replacement] = dict.fromkeys(iterators, _setter(option, value))
            yield Edit(source.code_with(changes), f"loops of {name} with {option}={value}", ((option, str(value)),))


def _setter(option: str, value: int) -> Replacement:
    def set_option(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call).with_changes(func=expression("tl.range"))
        return with_keyword(call, option, cst.Integer(str(value)))

    return set_option


def span_of(loop: cst.For) -> tuple[str, str, str] | None:
    """(index, stop, step) of ``for index in range(0, stop, step)``; None of another form."""
    if not is_counted(loop) or loop.orelse is not None:
        return None
    args = [a.value for a in cst.ensure_type(loop.iter, cst.Call).args if a.keyword is None]
    if len(args) != 3 or code_of(args[0]) != "0":
        return None
    return code_of(loop.target), code_of(args[1]), code_of(args[2])


def independent_loops(kernel: cst.FunctionDef) -> list[cst.For]:
    """Innermost loops over ``range(0, n, T)`` whose turns may run in any order, up to the rounding of sums."""
    loops = find_all(kernel, cst.For)
    return [loop for loop in loops if span_of(loop) is not None and _turns_commute(loop)]


def _turns_commute(loop: cst.For) -> bool:
    """Plain statements only; a name carried from turn to turn is a sum or maximum that nothing else reads."""
    span = span_of(loop)
    body = loop.body.body if isinstance(loop.body, cst.IndentedBlock) else ()
    if span is None or not all(isinstance(line, cst.SimpleStatementLine) for line in body):
        return False
    if span[0] not in find_names(loop.body) or span[0] in assigned_names(loop.body):
        return False
    carried = _carried(body)
    reads = [name for line in body for name in find_names(line)]
    return all(_is_reduced(name, body) and reads.count(name) == _n_in_its_update(name, body) for name in carried)


def _carried(body: Sequence[cst.BaseStatement | cst.BaseSmallStatement]) -> set[str]:
    """Names assigned in the body and read before that."""
    bound, carried = set(), set()
    assigned = {name for line in body for name in assigned_names(line)}
    for line in body:
        values = [cst.ensure_type(a, cst.Assign).value for a in find_all(line, cst.Assign)]
        read = [n for v in values for n in find_names(v)] if values else find_names(line)
        carried |= {name for name in read if name in assigned and name not in bound}
        bound |= set(assigned_names(line))
    return carried


def _update_of(name: str, body: Sequence[cst.BaseStatement | cst.BaseSmallStatement]) -> list[cst.CSTNode]:
    """The small statements that bind a name."""
    return [s for line in body if name in assigned_names(line) for s in line.children if name in assigned_names(s)]


def _is_reduced(name: str, body: Sequence[cst.BaseStatement | cst.BaseSmallStatement]) -> bool:
    match _update_of(name, body):
        case [cst.AugAssign(operator=cst.AddAssign())]:
            return True
        case [cst.Assign(value=cst.Call(func=func, args=args))]:
            of_itself = [a for a in args if isinstance(a.value, cst.Name) and a.value.value == name]
            return dotted(func) in ("tl.maximum", "tl.minimum", "tl.dot") and len(of_itself) == 1
        case _:
            return False


def _n_in_its_update(name: str, body: Sequence[cst.BaseStatement | cst.BaseSmallStatement]) -> int:
    return sum(find_names(statement).count(name) for statement in _update_of(name, body))
