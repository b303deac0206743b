"""Effects (through the tracer): the modelled clock of one problem on one data sheet: a source's time on each shape."""

from collections.abc import Mapping, Sequence

from kbtui.domain.candidate import source_sha
from kbtui.domain.device import DeviceSpec
from kbtui.domain.problem import ProblemSpec, Shape, ShapeRole
from kbtui.domain.profile import KernelResources
from kbtui.evaluation.modelled.proxy import passes_of, proxy_time
from kbtui.evaluation.modelled.time import ModelledTime, model_time
from kbtui.evaluation.modelled.trace import CallTrace
from kbtui.evaluation.modelled.tracing import Tracer, Untraced


class ModelledClock:
    """Modelled times, each source and shape once. Deterministic: the same source gives the same numbers."""

    def __init__(self, spec: ProblemSpec, device: DeviceSpec, tracer: Tracer) -> None:
        self._spec, self._device, self._tracer = spec, device, tracer
        self._known: dict[tuple[str, str], ModelledTime] = {}
        self._doubts: dict[tuple[str, str], str] = {}

    def times(
        self, source: str, shapes: Sequence[Shape], resources: Sequence[KernelResources]
    ) -> dict[str, ModelledTime]:
        """Times by shape name, in the order asked."""
        sha = source_sha(source)
        missing = [s for s in shapes if (sha, s.name) not in self._known]
        if missing:
            self._model(sha, source, missing, resources)
        return {s.name: self._known[sha, s.name] for s in shapes}

    def doubt(self, source: str, shapes: Sequence[Shape]) -> str | None:
        """Why a time is a rougher guess than usual, in one line; None where every shape was traced."""
        sha = source_sha(source)
        return next((self._doubts[sha, s.name] for s in shapes if (sha, s.name) in self._doubts), None)

    def bound_us(self, shape: Shape) -> float:
        """The problem's own bound on this device."""
        return self._spec.bound_us(shape, self._device)

    def _model(self, sha: str, source: str, shapes: list[Shape], resources: Sequence[KernelResources]) -> None:
        traces = self._tracer.traces(source, shapes)
        for shape in shapes:
            trace = traces[shape.name]
            if isinstance(trace, Untraced):
                self._known[sha, shape.name] = self._from_proxies(source, shape)
                self._doubts[sha, shape.name] = f"{shape.name} modelled from proxy shapes: {trace}"
            else:
                by_kernel = _of_shape(resources, shape)
                self._known[sha, shape.name] = model_time(trace, by_kernel, self._device, self.bound_us(shape))

    def _from_proxies(self, source: str, shape: Shape) -> ModelledTime:
        proxies = self._spec.shapes_of(ShapeRole.PROXY)
        traces = self._tracer.traces(source, proxies)
        followed = [(p, t) for p in proxies if isinstance(t := traces[p.name], CallTrace)]
        return proxy_time(self._spec, self._device, shape, passes_of(self._spec, followed))


def _of_shape(resources: Sequence[KernelResources], shape: Shape) -> Mapping[str, KernelResources]:
    """Compiled kernels by name; one compiled for another shape serves where this one has none."""
    others = {r.kernel: r for r in resources}
    return others | {r.kernel: r for r in resources if r.shape == shape.name}
