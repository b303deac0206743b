"""A time for a kernel that could be traced only on small shapes: the bytes it moved there, scaled. Pure.

The passes a kernel makes over a proxy shape (bytes moved over the fewest that must be) are taken to be those it makes
over the real one; time is then passes x bytes over bandwidth, or the arithmetic at its unit's rate, plus the launches.
"""

from dataclasses import dataclass

from kbtui.domain.device import DeviceSpec
from kbtui.domain.problem import ProblemSpec, Shape
from kbtui.evaluation.modelled.time import DRAM_EFFICIENCY, ModelledTime
from kbtui.evaluation.modelled.trace import CallTrace

#: What a kernel is charged that no shape could be traced of; it must not look good.
_UNKNOWN_PASSES = 8.0


@dataclass(frozen=True, slots=True)
class ProxyPasses:
    """What proxies showed: passes over memory, launches of a call."""

    passes: float
    n_launches: float


def passes_of(spec: ProblemSpec, traces: list[tuple[Shape, CallTrace]]) -> ProxyPasses | None:
    """The most passes that any traced proxy needed; None without one."""
    found = [
        ProxyPasses(
            sum(launch.moved_bytes() for launch in trace.launches) / max(spec.bytes_moved(shape), 1.0),
            sum(launch.count for launch in trace.launches) + len(trace.torch_ops),
        )
        for shape, trace in traces
    ]
    return max(found, key=lambda p: p.passes, default=None)


def proxy_time(spec: ProblemSpec, device: DeviceSpec, shape: Shape, found: ProxyPasses | None) -> ModelledTime:
    """An estimate on a tune shape, never under the problem's bound."""
    passes = max(1.0, found.passes) if found else _UNKNOWN_PASSES
    n_launches = found.n_launches if found else 1.0
    bound_us = spec.bound_us(shape, device)
    memory_us = passes * spec.bytes_moved(shape) / (device.dram_gb_s * 1e3 * DRAM_EFFICIENCY)
    launch_us = device.launch_us * (1 + 0.5 * max(0.0, n_launches - 1))
    total = launch_us + max(memory_us, bound_us * max(1.0, passes))
    return ModelledTime(shape.name, max(total, bound_us), launch_us, 0.0, (), bound_us, n_launches)
