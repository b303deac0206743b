"""Effects: what a kernel moves, without counters: an interpreting child traces its memory accesses, on the CPU.

Where ncu can count nothing, this says how many bytes are asked for, in how many sectors and passes; the diagnosis sets
them against the measured time. The child starts when it is first asked for.
"""

from collections.abc import Sequence
from pathlib import Path

from kbtui.domain.device import DeviceSpec
from kbtui.domain.problem import ProblemSpec, Shape
from kbtui.domain.profile import KernelResources
from kbtui.errors import EngineError
from kbtui.evaluation.compile.compiler import ProblemInputs
from kbtui.evaluation.modelled.clock import ModelledClock
from kbtui.evaluation.modelled.time import ModelledTime
from kbtui.evaluation.modelled.tracing import Tracer
from kbtui.evaluation.process import Zygote


class StaticTraffic:
    """Traces candidates of one problem. ``log``: where its child writes."""

    def __init__(self, spec: ProblemSpec, chip: DeviceSpec, inputs: ProblemInputs, log: Path) -> None:
        self._spec, self._chip, self._inputs, self._log = spec, chip, inputs, log
        self._zygote: Zygote | None = None
        self._clock: ModelledClock | None = None

    def of(self, source: str, shape: Shape, resources: Sequence[KernelResources]) -> ModelledTime | None:
        """Its traffic on a shape; None where it cannot be traced there, or no child can be started."""
        try:
            clock = self._started()
            traced = clock.times(source, [shape], resources)[shape.name]
        except EngineError:
            return None
        return traced if clock.doubt(source, [shape]) is None else None

    def close(self) -> None:
        """End the child. Idempotent."""
        if self._zygote is not None:
            self._zygote.close()
        self._zygote = self._clock = None

    def _started(self) -> ModelledClock:
        if self._clock is None:
            self._zygote = Zygote(self._log, interpret=True)
            self._clock = ModelledClock(self._spec, self._chip, Tracer(self._zygote, self._inputs, self._chip))
        return self._clock
