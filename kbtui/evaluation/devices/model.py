"""Effects: a device that is not there: ``model:a100``, ``model:h100``, ``model:h200``.

The gate runs under Triton's interpreter, the compile is a real one for the chip, and times are modelled from memory
accesses, compiled resources and the data sheet. Nothing here is ever compared with a measured time.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from kbtui.cores import cores
from kbtui.domain.device import DeviceSpec
from kbtui.domain.evaluation import Evaluated, EvaluationRequest, Opponent, ProblemReport, RungOutcome
from kbtui.domain.measurement import Clock, LiveSample, Measurement
from kbtui.domain.problem import Problem, Shape
from kbtui.domain.profile import Diagnosis, KernelResources, Profile
from kbtui.domain.rung import COMPILE, SCREEN, Rung
from kbtui.domain.verdict import Proof, Verdict, verified
from kbtui.domain.vetting import Vetting
from kbtui.errors import EngineError
from kbtui.evaluation.compile.compiler import Compiler, describe_inputs
from kbtui.evaluation.compile.report import CompileReport
from kbtui.evaluation.devices.static import judged_by_text
from kbtui.evaluation.gate.interpreter import InterpreterGate
from kbtui.evaluation.modelled.clock import ModelledClock
from kbtui.evaluation.modelled.compare import compare, timings
from kbtui.evaluation.modelled.time import ModelledTime
from kbtui.evaluation.modelled.tracing import Tracer
from kbtui.evaluation.process import Zygote, probe
from kbtui.evaluation.profiling.diagnose import diagnose
from kbtui.evaluation.vetting.vet import vet

NOT_PROFILED = "no GPU: modelled"
#: The interpreter takes up to 2 s a call.
CALL_TIMEOUT_S, COMPILE_TIMEOUT_S = 60.0, 60.0
_STAGES = (1, 2, 4)
SampleSink = Callable[[LiveSample], None]


class ModelDevice:
    """Evaluates candidates with no GPU. ``root`` is the workspace: logs and caches go below it.

    ``evaluate`` runs one candidate at a time; ``prefetch`` may compile others meanwhile.
    """

    def __init__(
        self,
        spec: DeviceSpec,
        root: Path,
        workers: int | None = None,
        *,
        call_timeout_s: float = CALL_TIMEOUT_S,
        compile_timeout_s: float = COMPILE_TIMEOUT_S,
    ) -> None:
        self.spec = spec
        self._call_timeout_s, self._compile_timeout_s = call_timeout_s, compile_timeout_s
        self._root = root
        self._workers = workers or max(1, cores() - 1)
        self._held = ExitStack()
        self._problem: Problem | None = None
        self._interpreting: Zygote | None = None

    def vet(self, problem: Problem, allclose: float | None = None) -> Vetting:
        """See ``ports.Vets``; before ``open``, which then takes over what was started."""
        return vet(self._interpreter(), problem, self.spec, Proof.INTERPRETER, allclose)

    def open(self, problem: Problem) -> ProblemReport:
        """Start the children's zygotes and learn the problem's inputs. Raises UsageError for a reference that raises.

        There are no times of PyTorch: they would be measured on another machine than the one modelled.
        """
        interpreting = self._interpreter()
        self._held.close()
        self._interpreting = None
        self._held.enter_context(interpreting)
        logs, cache = self._root / "scratch", self._root / "cache"
        compiling = self._held.enter_context(Zygote(logs / "compiler.log", interpret=False))
        inputs = describe_inputs(compiling, problem)
        self._compiler = self._held.enter_context(
            Compiler(
                compiling, self.spec, problem, inputs, cache / "compiled", self._workers,
                timeout_s=self._compile_timeout_s,
            )
        )  # fmt: skip
        self._gate = InterpreterGate(interpreting, problem, chip=self.spec, call_timeout_s=self._call_timeout_s)
        self._held.callback(self._gate.close)
        tracer = Tracer(interpreting, inputs, self.spec)
        self._clock = ModelledClock(problem.spec, self.spec, tracer)
        self._n_inputs = len(next(iter(inputs.arguments.values())))
        self._problem = problem
        family = self._gate.open()
        tracer.warm_up(1)
        missing = tuple(f"{p.name}: {p.detail}" for p in probe() if not p.enforced)
        return ProblemReport(family, (), missing, 0.0)

    def prefetch(self, source: str) -> None:
        """Begin to compile. A source that the policy refuses is left alone."""
        if self._problem is not None and self._refused(source) is None:
            self._compiler.submit(source)

    def evaluate(self, request: EvaluationRequest, on_sample: SampleSink) -> Evaluated:
        """Gate, modelled times, diagnosis. What goes wrong is a verdict."""
        started = time.monotonic()
        outcome = self._outcome(request, on_sample)
        return Evaluated(_timed(outcome, time.monotonic() - started))

    def close(self) -> None:
        """End all children. Idempotent."""
        if self._interpreting is not None:
            self._interpreting.close()
            self._interpreting = None
        self._held.close()
        self._problem = None

    def _interpreter(self) -> Zygote:
        if self._interpreting is None:
            self._interpreting = Zygote(self._root / "scratch" / "interpreter.log", interpret=True)
        return self._interpreting

    @property
    def _opened(self) -> Problem:
        if self._problem is None:
            raise EngineError("no problem is open on this device", "open one first")
        return self._problem

    def _outcome(self, request: EvaluationRequest, on_sample: SampleSink) -> RungOutcome:
        report = self._compiled(request.source)
        shapes = self._opened.spec.timed_at(max(request.rung.index, SCREEN))
        bound_us = self._clock.bound_us(shapes[0])
        if not report.verdict.ok or request.rung.index == COMPILE:
            return RungOutcome(report.verdict, 0.0, 0.0, report.resources, bound_us)
        verdict = self._gated(request)
        if not verdict.ok or request.rung.max_pairs == 0:
            return RungOutcome(verdict, 0.0, 0.0, report.resources, bound_us)
        times = self._clock.times(request.source, shapes, report.resources)
        measurement = self._measurement(request, shapes, times)
        _tell(request, measurement, on_sample)
        profile, diagnosis = self._diagnosed(request.rung, shapes, times, report)
        doubt = self._clock.doubt(request.source, shapes)
        verdict = replace(verdict, detail=f"{verdict.detail}; {doubt}") if doubt else verdict
        return RungOutcome(verdict, 0.0, 0.0, report.resources, bound_us, measurement, profile, diagnosis)

    def _compiled(self, source: str) -> CompileReport:
        refused = self._refused(source)
        return CompileReport(refused, (), 0.0) if refused else self._compiler.submit(source).result()

    def _refused(self, source: str) -> Verdict | None:
        """What the static policy or the signature has against it."""
        verdict = judged_by_text(source, self._opened.spec, self._n_inputs)
        return None if verdict.ok else verdict

    def _gated(self, request: EvaluationRequest) -> Verdict:
        """Every stage up to the rung's that the candidate has not passed yet."""
        verdict = verified(request.passed_stage, Proof.INTERPRETER, "passed before")
        for stage in _STAGES:
            if verdict.ok and request.passed_stage < stage <= request.rung.gate_stage:
                verdict = self._gate.check(request.source, stage, request.seed)
        return verdict

    def _measurement(
        self, request: EvaluationRequest, shapes: tuple[Shape, ...], times: dict[str, ModelledTime]
    ) -> Measurement:
        opponents = {o.id: o for o in (request.incumbent, request.champion) if o is not None}
        named = [(o.id, o) for o in opponents.values()] + ([("first", request.first)] if request.first else [])
        comparisons = tuple(compare(name, times, self._times_of(o, shapes)) for name, o in named)
        return Measurement(Clock.MODELLED, timings(times), comparisons)

    def _times_of(self, opponent: Opponent, shapes: tuple[Shape, ...]) -> dict[str, ModelledTime]:
        return self._clock.times(opponent.source, shapes, self._compiled(opponent.source).resources)

    def _diagnosed(
        self, rung: Rung, shapes: tuple[Shape, ...], times: dict[str, ModelledTime], report: CompileReport
    ) -> tuple[Profile | None, Diagnosis]:
        """Of the shape furthest above what a launch and the problem's bound cost: there is the most to gain."""
        worst = max(shapes, key=lambda s: times[s.name].time_us / (times[s.name].bound_us + self.spec.launch_us))
        resources = _on(report.resources, worst)
        found = diagnose(
            self._opened.spec, self.spec, worst, times[worst.name].time_us, resources, modelled=times[worst.name]
        )
        return (Profile(worst.name, not_profiled=NOT_PROFILED) if rung.profile else None), found


def _on(resources: tuple[KernelResources, ...], shape: Shape) -> tuple[KernelResources, ...]:
    return tuple(r for r in resources if r.shape == shape.name) or resources


def _timed(outcome: RungOutcome, wall_s: float) -> RungOutcome:
    return replace(outcome, wall_s=wall_s)


def _tell(request: EvaluationRequest, measurement: Measurement, on_sample: SampleSink) -> None:
    """The live pane gets one sample a shape, against the first opponent, or the candidate itself."""
    ratios = {s.shape: s.ratio for c in measurement.comparisons[:1] for s in c.shapes}
    against = measurement.comparisons[0].against if measurement.comparisons else request.candidate
    for timing in measurement.timings:
        other_us = timing.device_us * ratios.get(timing.shape, 1.0)
        on_sample(LiveSample(request.candidate, against, timing.shape, timing.device_us, other_us, 1, 1))
