"""A grouped order of a two-dimensional grid, so that programs that run together share operands in L2.

``tl.swizzle2d`` permutes the grid, so the result is the same whatever the group.
"""

from collections.abc import Iterator

import libcst as cst

from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target
from kbtui.generation.rewrites.source import Replacement, Source
from kbtui.generation.rewrites.syntax import calls_in, param_names, statement

_GROUPS = (8, 4, 16)


def _edits(source: Source, _target: Target) -> Iterator[Edit]:
    for name, kernel in source.kernels.items():
        by_axis = {axis: _ids_of_axis(kernel, axis) for axis in (0, 1)}
        if not all(by_axis.values()) or calls_in(kernel, "swizzle2d") or {"pid_0", "pid_1"} & set(param_names(kernel)):
            continue
        for group in _GROUPS:
            yield Edit(_swizzled(source, kernel, by_axis, group), f"grid of {name} in groups of {group}",
                       (("group", str(group)),))  # fmt: skip


def _swizzled(source: Source, kernel: cst.FunctionDef, by_axis: dict[int, list[cst.Call]], group: int) -> str:
    """Names for the permuted ids at the top of the kernel, and every read of an id through them.

    The hardware counts axis 0 fastest, so axis 1 is the one that is grouped.
    """
    line = statement(
        "pid_1, pid_0 = tl.swizzle2d("
        f"tl.program_id(1), tl.program_id(0), tl.num_programs(1), tl.num_programs(0), {group})"
    )
    changes: dict[cst.CSTNode, Replacement] = {
        call: cst.Name(f"pid_{axis}") for axis, calls in by_axis.items() for call in calls
    }
    body = cst.ensure_type(kernel.body, cst.IndentedBlock)
    at = 1 if kernel.get_docstring() is not None else 0

    def with_line(node: cst.CSTNode) -> cst.CSTNode:
        block = cst.ensure_type(node, cst.IndentedBlock)
        return block.with_changes(body=[*block.body[:at], line, *block.body[at:]])

    return source.code_with({**changes, body: with_line})


def _ids_of_axis(kernel: cst.FunctionDef, axis: int) -> list[cst.Call]:
    calls = calls_in(kernel, "program_id")
    return [c for c in calls if isinstance(c.args[0].value, cst.Integer) and int(c.args[0].value.value) == axis]


REWRITE = Rewrite(
    "grid_swizzle",
    "a kernel that reads both tl.program_id(0) and tl.program_id(1)",
    (Bottleneck.DRAM, Bottleneck.EXTRA_PASSES),
    ("group_the_grid",),
    _edits,
)
