"""As many programs as the chip holds, each looping over what were programs of their own."""

from collections.abc import Iterator

from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.regrid import can_regrid, regridded
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target
from kbtui.generation.rewrites.source import Source

_PER_SM = (2, 4, 1, 8)
_TURNS = "tl.range(tl.program_id(0), n_programs, tl.num_programs(0))"


def _edits(source: Source, target: Target) -> Iterator[Edit]:
    for name in source.kernels:
        for per_sm in _PER_SM if can_regrid(source, name) else ():
            n = target.device.n_sms * per_sm
            code = regridded(source, name, _TURNS, f"min({{n}}, {n})")
            yield Edit(code, f"at most {n} programs of {name}, looping", (("programs", str(n)),))


REWRITE = Rewrite(
    "persistent_grid",
    "a kernel of a one-dimensional grid that does not return early",
    (Bottleneck.LAUNCH, Bottleneck.LATENCY, Bottleneck.BARRIER),
    ("persistent_programs",),
    _edits,
)
