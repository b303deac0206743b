"""What compiling a candidate found. Values; standard library only."""

from dataclasses import dataclass

from kbtui.domain.profile import KernelResources
from kbtui.domain.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of one call of a candidate, in order.

    Attributes:
        shape: name of the problem's shape.
        grid: programs along x, y, z.
        constexprs: compile-time arguments as text, ``(("BLOCK", "4096"),)``.
        arguments: the others by kind: ``*fp32``, ``i32``; what Triton specialised on after a colon: ``i32:16``.
        tuning: launched by ``@triton.autotune`` to compare configurations.
    """

    shape: str
    kernel: str
    grid: tuple[int, int, int]
    num_warps: int
    num_stages: int
    constexprs: tuple[tuple[str, str], ...] = ()
    arguments: tuple[tuple[str, str], ...] = ()
    tuning: bool = False


@dataclass(frozen=True, slots=True)
class CompileReport:
    """Stage 0 of the gate after the static policy. ``resources``: one entry a distinct kernel and launch of a shape.

    ``compile_s`` is the child's wall time, all shapes together; ``cache`` the directory for TRITON_CACHE_DIR where
    the compiled kernels lie, empty unless the verdict is ``verified``.
    """

    verdict: Verdict
    resources: tuple[KernelResources, ...]
    compile_s: float
    launches: tuple[Launch, ...] = ()
    cache: str = ""

    def launches_of(self, shape: str) -> tuple[Launch, ...]:
        """What one call on that shape launches, tuning left out."""
        return tuple(launch for launch in self.launches if launch.shape == shape and not launch.tuning)
