"""Which resource bounds a kernel: one pure function for counters, compiled resources and the model."""

from collections.abc import Sequence

from kbtui.domain.device import DeviceSpec
from kbtui.domain.measurement import Clock
from kbtui.domain.problem import ProblemSpec, Shape
from kbtui.domain.profile import Diagnosis, KernelResources, Profile
from kbtui.evaluation.modelled.time import ModelledTime
from kbtui.evaluation.profiling.case import Case
from kbtui.evaluation.profiling.counters import work_measured
from kbtui.evaluation.profiling.rules import findings
from kbtui.evaluation.profiling.sentence import sentence
from kbtui.evaluation.profiling.work import Work, work_compiled, work_traced


def diagnose(
    spec: ProblemSpec,
    device: DeviceSpec,
    shape: Shape,
    time_us: float,
    resources: Sequence[KernelResources],
    profile: Profile | None = None,
    modelled: ModelledTime | None = None,
    n_launches: float | None = None,
) -> Diagnosis:
    """The ranked bottlenecks of one kernel on one shape.

    Args:
        time_us: its time there, measured or modelled; never the time under the profiler.
        resources: of the candidate's kernels on this shape.
        profile: counters, if there are any; with ``not_profiled`` set it counts as none.
        modelled: the time model's parts. The source where the device is a model; on a GPU without counters, the
            bytes that a trace of the kernel's accesses says it moves.
        n_launches: kernel launches in one call, where known.

    Headroom is against the problem's own bound: bytes over bandwidth, operations over the unit's rate.
    """
    work = _work(device, resources, profile, modelled, n_launches, time_us)
    n_bytes, flops, dtype = spec.bytes_moved(shape), spec.flops(shape), spec.dtype_of(shape)
    bound_us = device.bound_us(n_bytes, flops, dtype)
    case = Case(device, dtype, time_us, bound_us, n_bytes, flops, work)
    ranked = findings(case)
    return Diagnosis(sentence(case, ranked[0]), ranked, shape.name, time_us, bound_us, work.source)


def _work(
    device: DeviceSpec,
    resources: Sequence[KernelResources],
    profile: Profile | None,
    modelled: ModelledTime | None,
    n_launches: float | None,
    time_us: float,
) -> Work:
    if profile is not None and profile.not_profiled is None and profile.metrics:
        return work_measured(profile, resources, device, n_launches)
    if modelled is not None:
        source = "model" if device.clock is Clock.MODELLED else "compiled"
        return work_traced(modelled, resources, device, time_us, n_launches, source)
    return work_compiled(resources, device, n_launches)
