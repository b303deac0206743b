"""More or fewer stages of software pipelining at the launch."""

from collections.abc import Iterable

import libcst.matchers as m

from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.launch_option import edits_of_option
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target
from kbtui.generation.rewrites.source import Source


def _steps(present: int | None) -> tuple[int, ...]:
    around = (present + 1, present - 1, present + 2) if present is not None else (2, 4, 1)  # Triton's default is 3
    return tuple(n for n in around if 1 <= n <= 6)


def _edits(source: Source, _target: Target) -> Iterable[Edit]:
    def has_loop(kernel: str) -> bool:
        return bool(m.findall(source.kernels[kernel], m.For()))

    return edits_of_option(source, "num_stages", lambda launch: has_loop(launch.kernel), _steps)


REWRITE = Rewrite(
    "num_stages",
    "a launch of a kernel with a loop",
    (Bottleneck.LATENCY, Bottleneck.DRAM, Bottleneck.OCCUPANCY_SHARED, Bottleneck.COMPUTE),
    ("load_ahead", "fewer_stages"),
    _edits,
)
