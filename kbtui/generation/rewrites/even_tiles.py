"""A fast path for sizes that tiles divide: the host says so in a constant, and the masks fold away.

``cols < n`` becomes ``(cols < n) | EVEN_N`` with ``EVEN_N = n % BLOCK == 0`` at the launch, where cols run over a whole
tile that begins at a multiple of BLOCK and n is what the grid or the loop was cut by.
"""

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.loops import is_counted, span_of
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target
from kbtui.generation.rewrites.source import Launch, Replacement, Source, arguments_of
from kbtui.generation.rewrites.syntax import (
    code_of,
    constexpr_params,
    dotted,
    expression,
    find_all,
    find_names,
    is_autotuned,
    param_names,
    values_of,
    with_keyword,
)


def _edits(source: Source, _target: Target) -> Iterator[Edit]:
    for launch in source.launches:
        kernel = source.kernels[launch.kernel]
        alone = [x for x in source.launches if x.kernel == launch.kernel] == [launch]
        if not alone or is_autotuned(kernel) or not _of_known_kernel(source, launch):
            continue
        given = arguments_of(source, launch)
        for size, tile in _cut(kernel):
            if size not in given or tile not in given or not _pure(given[size]) or not _pure(given[tile]):
                continue
            masks = _masks(launch, kernel, size, tile, given)
            flag = f"EVEN_{size.upper()}"
            if masks and flag not in find_names(source.module):
                even = f"({code_of(given[size])}) % ({code_of(given[tile])}) == 0"
                changes: dict[cst.CSTNode, Replacement] = dict.fromkeys(masks, _or_even(flag))
                changes[kernel.params] = _with_flag(flag)
                changes[launch.call] = _passing(flag, even)
                yield Edit(source.code_with(changes), f"{launch.kernel} without masks where {tile} divides {size}",
                           (("even", size),))  # fmt: skip


def _of_known_kernel(source: Source, launch: Launch) -> bool:
    subscript = cst.ensure_type(launch.call.func, cst.Subscript)
    return cst.ensure_type(subscript.value, cst.Name).value in source.kernels


def _cut(kernel: cst.FunctionDef) -> list[tuple[str, str]]:
    """(size, tile) pairs of the kernel's parameters that some comparison could be about."""
    tiles = constexpr_params(kernel)
    sizes = [p for p in param_names(kernel) if p not in tiles]
    bounds = {code_of(cst.ensure_type(c, cst.Comparison).comparisons[0].comparator)
              for c in m.findall(kernel, m.Comparison())}  # fmt: skip
    return [(size, tile) for size in sizes if size in bounds for tile in tiles]


def _pure(node: cst.BaseExpression) -> bool:
    """Whether it may be written twice."""
    allowed = {"triton.next_power_of_2", "triton.cdiv", "min", "max", "len", "int"}
    calls = find_all(node, cst.Call)
    return all(
        dotted(c.func) in allowed or m.matches(c.func, m.Attribute(attr=m.Name("numel") | m.Name("size")))
        for c in calls
    )


def _masks(
    launch: Launch, kernel: cst.FunctionDef, size: str, tile: str, given: dict[str, cst.BaseExpression]
) -> list[cst.Comparison]:
    """Comparisons ``lanes < size`` that always hold where tile divides size."""
    loops = [span_of(cst.ensure_type(x, cst.For)) for x in find_all(kernel, cst.For) if is_counted(x)]
    indices = {s[0] for s in loops if s is not None and (s[1], s[2]) == (size, tile)}
    found = []
    for node in m.findall(kernel, m.Comparison(comparisons=[m.ComparisonTarget(operator=m.LessThan())])):
        comparison = cst.ensure_type(node, cst.Comparison)
        if code_of(comparison.comparisons[0].comparator) == size:
            lanes = _unfolded(kernel, comparison.left)
            if lanes is not None and _covers(launch, kernel, lanes, tile, indices, given, size):
                found.append(comparison)
    return found


def _unfolded(kernel: cst.FunctionDef, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """What a name, indexed with None or not, was assigned once."""
    while isinstance(node, (cst.Subscript, cst.Name)):
        if isinstance(node, cst.Subscript):
            node = node.value
            continue
        bound = values_of(kernel, node.value)
        if len(bound) != 1:
            return None
        node = bound[0]
    return node


def _covers(
    launch: Launch, kernel: cst.FunctionDef, lanes: cst.BaseExpression, tile: str, indices: set[str],
    given: dict[str, cst.BaseExpression], size: str,
) -> bool:  # fmt: skip
    """``arange(0, tile)``, alone, plus a loop index, or plus ``program_id * tile`` of a grid cut by both."""
    if _is_arange(lanes, tile):
        return True
    if not isinstance(lanes, cst.BinaryOperation) or not isinstance(lanes.operator, cst.Add):
        return False
    for base, rest in ((lanes.left, lanes.right), (lanes.right, lanes.left)):
        arange = _unfolded(kernel, rest) if isinstance(rest, cst.Name) else rest
        if arange is None or not _is_arange(arange, tile):
            continue
        if code_of(base) in indices:
            return True
        return _is_place_times(kernel, base, tile) and _grid_is_cut(launch, given[size], given[tile])
    return False


def _is_arange(node: cst.BaseExpression, tile: str) -> bool:
    while isinstance(node, cst.Subscript):
        node = node.value
    return isinstance(node, cst.Call) and dotted(node) == "tl.arange" and [code_of(a.value) for a in node.args] == [
        "0", tile,
    ]  # fmt: skip


def _is_place_times(kernel: cst.FunctionDef, node: cst.BaseExpression, tile: str) -> bool:
    if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Multiply):
        return False
    sides = (node.left, node.right)
    other = [s for s in sides if code_of(s) != tile]
    if len(other) != 1:
        return False
    place = _unfolded(kernel, other[0]) if isinstance(other[0], cst.Name) else other[0]
    return place is not None and code_of(place).startswith("tl.program_id(")


def _grid_is_cut(launch: Launch, size: cst.BaseExpression, tile: cst.BaseExpression) -> bool:
    grid = launch.grid
    if isinstance(grid, cst.Name):
        bound = values_of(launch.host, grid.value)
        grid = bound[0] if len(bound) == 1 else grid
    return f"triton.cdiv({code_of(size)}, {code_of(tile)})" in code_of(grid)


def _or_even(flag: str) -> Replacement:
    def either(node: cst.CSTNode) -> cst.CSTNode:
        comparison = cst.ensure_type(node, cst.Comparison)
        inner = comparison.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return cst.BinaryOperation(inner, cst.BitOr(), cst.Name(flag), lpar=[cst.LeftParen()], rpar=[cst.RightParen()])

    return either


def _with_flag(flag: str) -> Replacement:
    def change(node: cst.CSTNode) -> cst.CSTNode:
        params = cst.ensure_type(node, cst.Parameters)
        default = cst.Name("False") if params.params[-1].default is not None else None
        annotation = cst.Annotation(expression("tl.constexpr"))
        new = cst.Param(cst.Name(flag), annotation, default=default, comma=params.params[-1].comma)
        last = params.params[-1].with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
        return params.with_changes(params=[*params.params[:-1], last, new])

    return change


def _passing(flag: str, even: str) -> Replacement:
    return lambda call: with_keyword(cst.ensure_type(call, cst.Call), flag, expression(even))


REWRITE = Rewrite(
    "even_tiles",
    "a mask `p * T + tl.arange(0, T) < n` of a grid or loop over n in tiles of T",
    (Bottleneck.UNCOALESCED, Bottleneck.COMPUTE, Bottleneck.LATENCY),
    ("no_masks_inside",),
    _edits,
)
