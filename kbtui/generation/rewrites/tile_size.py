"""Tiles twice or half as large: constexpr sizes at a launch, the local name or module constant behind them."""

import re
from collections.abc import Iterable, Iterator

import libcst as cst
import libcst.matchers as m

from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target
from kbtui.generation.rewrites.source import Launch, Source, integers_behind
from kbtui.generation.rewrites.syntax import (
    calls_in,
    constexpr_params,
    contains,
    dotted,
    find_all,
    param_names,
    values_of,
)

_TILE_NAME = re.compile(r"BLOCK|TILE|CHUNK|ROWS|COLS|PIXELS|CHANNELS|^[XYR]?B[MNKD]?$", re.IGNORECASE)
_FACTORS = (("2", 2.0), ("1/2", 0.5))
_LARGEST, _LARGEST_OF_DOT, _SMALLEST_OF_DOT = 65536, 256, 16


def _edits(source: Source, _target: Target) -> Iterator[Edit]:
    for launch in source.launches:
        for name, value in _tiles(source, launch):
            integers = integers_behind(source, launch, value)
            tied = _tied_in_grid(source, launch, name, integers)
            if integers and tied is not None:
                yield from _scaled(source, name, [*integers, *tied], _limits(source, launch))
    for constant, integer in _module_constants(source):
        yield from _scaled(source, constant, [integer], (1, _cap(source, constant)))


def _scaled(source: Source, name: str, integers: list[cst.Integer], limits: tuple[int, int]) -> Iterator[Edit]:
    """All integers behind one tile by one factor; one that would leave the limits stays."""
    before = sorted({int(i.value) for i in integers})
    for _, factor in _FACTORS:
        new = {i: int(int(i.value) * factor) for i in integers}
        changed = {i: v for i, v in new.items() if limits[0] <= v <= limits[1]}
        if changed and all(v & (v - 1) == 0 for v in before):
            after = sorted({changed.get(i, int(i.value)) for i in integers})
            code = source.code_with({i: cst.Integer(str(v)) for i, v in changed.items()})
            yield Edit(code, f"{name} {_several(before)} to {_several(after)}", ((name, _several(after)),))


def _cap(source: Source, constant: str) -> int:
    """The largest value of a module constant that acts: ``min(CONSTANT, 8, …)`` takes no more than eight of it."""
    calls = [call for call in find_all(source.module, cst.Call) if dotted(call.func) == "min"]
    args = [[arg.value for arg in call.args] for call in calls]
    capped = [of for of in args if any(isinstance(a, cst.Name) and a.value == constant for a in of)]
    return min([_LARGEST, *(int(a.value) for of in capped for a in of if isinstance(a, cst.Integer))])


def _several(values: list[int]) -> str:
    return "/".join(map(str, values))


def _tiles(source: Source, launch: Launch) -> Iterator[tuple[str, cst.BaseExpression]]:
    """The launch's constexpr arguments whose names say that they are tile sizes."""
    kernel = source.kernels[launch.kernel]
    names = param_names(kernel)
    positional = [a for a in launch.call.args if a.keyword is None]
    for name in constexpr_params(kernel):
        if not _TILE_NAME.search(name):
            continue
        arg = launch.keyword(name)
        index = names.index(name)
        if arg is None and index < len(positional) and not any(a.star for a in positional):
            arg = positional[index]
        if arg is not None:
            yield name, arg.value


def _limits(source: Source, launch: Launch) -> tuple[int, int]:
    has_dot = bool(calls_in(source.kernels[launch.kernel], "dot"))
    return (_SMALLEST_OF_DOT, _LARGEST_OF_DOT) if has_dot else (1, _LARGEST)


def _tied_in_grid(source: Source, launch: Launch, name: str, integers: list[cst.Integer]) -> list[cst.Integer] | None:
    """Literals elsewhere in the host that must change with the tile (``triton.cdiv(n, 64)``); None if unclear.

    Only a literal at the launch can have such twins: a name is one place already. With several tiles of one size, the
    grid's axis tells which is whose (``tl.program_id(1) * BLOCK_N`` belongs to the grid's second element).
    """
    if not any(contains(launch.call, integer) for integer in integers):
        return []
    size = integers[0].value
    twins = [twin for place in _places(source, launch) for twin in _ceiling_divisions_by(place, size)]
    if not twins:
        return []
    same_size = [n for n, v in _tiles(source, launch) if size in [i.value for i in integers_behind(source, launch, v)]]
    if len(same_size) == 1:
        return twins
    axis = _axis_of(source.kernels[launch.kernel], name)
    elements = _grid_elements(launch)
    if axis is None or elements is None or axis >= len(elements):
        return None if axis is not None else []
    return _ceiling_divisions_by(elements[axis], size)


def _places(source: Source, launch: Launch) -> list[cst.CSTNode]:
    """Where a tile's twins may be: in a host of one launch anywhere, else at this launch and in its grid's name."""
    if [x for x in source.launches if x.host is launch.host] == [launch]:
        return [launch.host]
    grid = launch.grid
    return [launch.call, *(values_of(launch.host, grid.value) if isinstance(grid, cst.Name) else [])]


def _ceiling_divisions_by(node: cst.CSTNode, size: str) -> list[cst.Integer]:
    calls = find_all(node, cst.Call)
    divisors = [c.args[1].value for c in calls if dotted(c.func).endswith("cdiv") and len(c.args) == 2]
    return [d for d in divisors if isinstance(d, cst.Integer) and d.value == size]


def _axis_of(kernel: cst.FunctionDef, name: str) -> int | None:
    """The grid axis a tile belongs to: that of the ``program_id`` it is multiplied with."""
    for node in m.findall(kernel, m.BinaryOperation(operator=m.Multiply())):
        product = cst.ensure_type(node, cst.BinaryOperation)
        sides = (product.left, product.right)
        if any(isinstance(s, cst.Name) and s.value == name for s in sides):
            for call in (c for s in sides for c in calls_in(_unfold(kernel, s), "program_id")):
                if isinstance(call.args[0].value, cst.Integer):
                    return int(call.args[0].value.value)
    return None


def _unfold(kernel: cst.FunctionDef, side: cst.BaseExpression) -> cst.BaseExpression:
    """What a name was assigned, so that ``pid_m * BLOCK_M`` shows its program_id."""
    if isinstance(side, cst.Name):
        values = values_of(kernel, side.value)
        return values[0] if values else side
    return side


def _grid_elements(launch: Launch) -> list[cst.BaseExpression] | None:
    grid = launch.grid
    if isinstance(grid, cst.Name):
        values = values_of(launch.host, grid.value)
        grid = values[0] if len(values) == 1 else grid
    if isinstance(grid, cst.Lambda):
        grid = grid.body
    return [e.value for e in grid.elements] if isinstance(grid, cst.Tuple) else None


def _module_constants(source: Source) -> Iterable[tuple[str, cst.Integer]]:
    for line in source.module.body:
        match line:
            case cst.SimpleStatementLine(
                body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=cst.Integer() as value)]
            ) if _TILE_NAME.search(name):
                yield name, value


REWRITE = Rewrite(
    "tile_size",
    "a tile size that is a power of two written as a number",
    (
        Bottleneck.DRAM,
        Bottleneck.LATENCY,
        Bottleneck.EXTRA_PASSES,
        Bottleneck.OCCUPANCY_REGISTERS,
        Bottleneck.OCCUPANCY_SHARED,
        Bottleneck.SPILLS,
        Bottleneck.TOO_FEW_PROGRAMS,
        Bottleneck.COMPUTE,
    ),
    ("larger_tiles", "smaller_tiles"),
    _edits,
)
