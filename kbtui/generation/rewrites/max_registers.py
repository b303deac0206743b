"""A cap on registers a thread, so that more warps are resident."""

from collections.abc import Iterable

from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.launch_option import edits_of_option
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target
from kbtui.generation.rewrites.source import Source


def _steps(present: int | None) -> tuple[int, ...]:
    """Caps at which 2, 3 and 4 blocks of 256 threads are resident on an SM of 65536 registers."""
    return tuple(n for n in (128, 80, 64) if n != present)


def _edits(source: Source, _target: Target) -> Iterable[Edit]:
    return edits_of_option(source, "maxnreg", lambda _launch: True, _steps)


REWRITE = Rewrite(
    "max_registers",
    "a launch of a kernel",
    (Bottleneck.OCCUPANCY_REGISTERS,),
    ("smaller_tiles",),
    _edits,
)
