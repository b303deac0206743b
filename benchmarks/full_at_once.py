"""A search without the ladder: a device behind which whoever compiles is confirmed at once. Effects: its device's."""

import math
from dataclasses import dataclass, field, replace

from kbtui.domain.device import DeviceSpec
from kbtui.domain.evaluation import Evaluated, EvaluationRequest, ProblemReport
from kbtui.domain.measurement import Comparison, Outcome
from kbtui.domain.problem import Problem
from kbtui.domain.rung import COMPILE, CONFIRM, DEFAULT_LADDER
from kbtui.engine.ports import Device, SampleSink
from kbtui.evaluation.devices.cuda import CudaDevice

#: What an evaluation calls the problem's first kernel.
FIRST = "first"


@dataclass(slots=True)
class FullAtOnce:
    """A device behind which every candidate is confirmed the first time that anything but compiling is asked of it."""

    device: Device
    known: dict[str, Evaluated] = field(default_factory=dict)
    spec: DeviceSpec = field(init=False)

    def __post_init__(self) -> None:
        self.spec = self.device.spec

    def open(self, problem: Problem) -> ProblemReport:
        return self.device.open(problem)

    def prefetch(self, source: str) -> None:
        """All shapes that it will be asked for."""
        if isinstance(self.device, CudaDevice):
            self.device.compile_for_gate(source)
        else:
            self.device.prefetch(source)

    def close(self) -> None:
        self.device.close()

    def evaluate(self, request: EvaluationRequest, on_sample: SampleSink) -> Evaluated:
        if request.rung.index == COMPILE:
            return self.device.evaluate(request, on_sample)
        if request.candidate not in self.known:
            whole = replace(request, rung=DEFAULT_LADDER[CONFIRM])
            self.known[request.candidate] = self.device.evaluate(whole, on_sample)
            return self.known[request.candidate]
        return self._again(request)

    def _again(self, request: EvaluationRequest) -> Evaluated:
        """What is known, at no cost; beside an incumbent that it has not met, by what both are over the first."""
        outcome = replace(self.known[request.candidate].outcome, gpu_s=0.0, wall_s=0.0)
        rival = request.incumbent.id if request.incumbent else None
        measured = outcome.measurement
        if measured is None or rival is None or measured.against(rival) is not None:
            return Evaluated(outcome)
        mine, theirs = measured.against(FIRST), self._over_first(rival)
        if mine is None or theirs is None:
            return Evaluated(outcome)
        told = replace(measured, comparisons=(*measured.comparisons, chained(rival, mine, theirs)))
        return Evaluated(replace(outcome, measurement=told))

    def _over_first(self, name: str) -> Comparison | None:
        known = self.known.get(name)
        measured = known.outcome.measurement if known else None
        return measured.against(FIRST) if measured else None


def chained(rival: str, mine: Comparison, theirs: Comparison) -> Comparison:
    """How two stand that both met a third: the ratio of their ratios, errors added in quadrature of logarithms."""
    log = math.log(mine.ratio) - math.log(theirs.ratio)
    error = math.hypot(_half_width(mine), _half_width(theirs))
    outcome = Outcome.FASTER if log > error else Outcome.SLOWER if log < -error else Outcome.UNCLEAR
    low, high = math.exp(log - error), math.exp(log + error)
    return replace(mine, against=rival, outcome=outcome, ratio=math.exp(log), low=low, high=high, shapes=())


def _half_width(found: Comparison) -> float:
    return math.log(found.high / found.low) / 2
