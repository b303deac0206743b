"""More or fewer warps a program."""

from collections.abc import Iterable

from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.launch_option import edits_of_option
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target
from kbtui.generation.rewrites.source import Source


def _steps(present: int | None) -> tuple[int, ...]:
    if present is None:  # Triton's default is 4
        return (8, 2, 16)
    return tuple(n for n in (present * 2, present // 2, present * 4, present // 4) if 1 <= n <= 32)


def _edits(source: Source, _target: Target) -> Iterable[Edit]:
    return edits_of_option(source, "num_warps", lambda _launch: True, _steps)


REWRITE = Rewrite(
    "num_warps",
    "a launch of a kernel",
    (
        Bottleneck.SPILLS,
        Bottleneck.LATENCY,
        Bottleneck.OCCUPANCY_REGISTERS,
        Bottleneck.OCCUPANCY_BLOCKS,
        Bottleneck.BARRIER,
    ),
    ("more_warps", "fewer_warps"),
    _edits,
)
