"""Packing beside a search: between its steps, and at a standstill whenever a device times something."""

from kbtui.domain.device import DeviceSpec
from kbtui.domain.evaluation import Evaluated, EvaluationRequest, ProblemReport
from kbtui.domain.event import Envelope
from kbtui.domain.problem import Problem
from kbtui.engine.engine import Narrator
from kbtui.engine.ports import Device, SampleSink
from kbtui.scheduler.state import RunState
from store.packing import Packer


class QuietDevice:
    """A device during whose timed work the packer stands still: opening, which times PyTorch, and all rungs that time.

    Rung 0 times nothing; a pack goes on there, and while a generator thinks.
    """

    def __init__(self, device: Device, packer: Packer) -> None:
        self.spec: DeviceSpec = device.spec
        self._device = device
        self._packer = packer

    def open(self, problem: Problem) -> ProblemReport:
        with self._packer.held():
            return self._device.open(problem)

    def prefetch(self, source: str) -> None:
        self._device.prefetch(source)

    def evaluate(self, request: EvaluationRequest, on_sample: SampleSink) -> Evaluated:
        if not request.rung.max_pairs:
            return self._device.evaluate(request, on_sample)
        with self._packer.held():
            return self._device.evaluate(request, on_sample)

    def close(self) -> None:
        self._device.close()


def packing_between(narrate: Narrator, packer: Packer) -> Narrator:
    """Tell an event, then see whether there is something to pack."""

    def told(envelope: Envelope, state: RunState) -> None:
        narrate(envelope, state)
        packer.consider()

    return told
