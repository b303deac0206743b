"""Several neighbouring rows (or tiles) a program, one after the other: fewer programs, and what they share is in L1."""

from collections.abc import Iterator

from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.regrid import can_regrid, regridded
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target
from kbtui.generation.rewrites.source import Source

_ROWS = (2, 4, 8)


def _edits(source: Source, _target: Target) -> Iterator[Edit]:
    for name in source.kernels:
        for rows in _ROWS if can_regrid(source, name) else ():
            first = f"tl.program_id(0) * {rows}"
            turns = f"range({first}, tl.minimum({first} + {rows}, n_programs))"
            code = regridded(source, name, turns, f"triton.cdiv({{n}}, {rows})")
            yield Edit(code, f"{rows} of the grid's places a program of {name}", (("rows", str(rows)),))


REWRITE = Rewrite(
    "rows_per_program",
    "a kernel of a one-dimensional grid that does not return early",
    (Bottleneck.LAUNCH, Bottleneck.OCCUPANCY_BLOCKS, Bottleneck.LATENCY),
    ("several_rows_a_program",),
    _edits,
)
