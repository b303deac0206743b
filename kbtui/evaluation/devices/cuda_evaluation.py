"""Effects: evaluates one candidate at one rung on a GPU: compile, gate, turns against its opponents, profile."""

import contextlib
import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from kbtui.domain.candidate import Attachment
from kbtui.domain.evaluation import Evaluated, EvaluationRequest, RungOutcome
from kbtui.domain.measurement import Clock, Comparison, Measurement, Outcome
from kbtui.domain.problem import Shape, ShapeRole
from kbtui.domain.profile import Diagnosis, KernelResources, Profile
from kbtui.domain.rung import COMPILE, CONFIRM, SCREEN
from kbtui.domain.verdict import Proof, Reason, Verdict, rejected, unverified, verified
from kbtui.engine.ports import SampleSink
from kbtui.errors import DeviceError, EngineError
from kbtui.evaluation.compile.report import CompileReport
from kbtui.evaluation.devices.cuda_chip import has_data_sheet
from kbtui.evaluation.devices.cuda_match import FaultError, Match
from kbtui.evaluation.devices.cuda_opened import OpenedProblem
from kbtui.evaluation.devices.cuda_sides import OpponentError, Side
from kbtui.evaluation.gate.clients import Caller, RefereeError
from kbtui.evaluation.gate.failures import device_is_suspect, verdict_of_failure
from kbtui.evaluation.gate.plan import STAGES, stages_to_run
from kbtui.evaluation.gate.runner import drawn_age_s, run_aged, run_stage
from kbtui.evaluation.gpu_lock import Turn
from kbtui.evaluation.measure.adjudicate import compare, decide, settled_within
from kbtui.evaluation.measure.further import compare_fresh, n_further
from kbtui.evaluation.measure.record import MatchLog
from kbtui.evaluation.measure.schedule import looks
from kbtui.evaluation.modelled.time import ModelledTime
from kbtui.evaluation.process import Worker, WorkerFailure
from kbtui.evaluation.profiling.diagnose import diagnose
from kbtui.evaluation.profiling.ncu import Profiler

ALONE_BLOCKS = 4
#: A time below this share of the data sheet's bound is no time. What may stay in L2 is left out of the bound.
CHIP_MARGIN = 0.9
_FEW_LOOKS = (4, 10)
#: A process that is stopped finishes the system call it is in.
STILL_TIMEOUT_S = 10.0


class Evaluation:
    """One candidate at one rung."""

    def __init__(self, opened: OpenedProblem, request: EvaluationRequest, on_sample: SampleSink) -> None:
        self.opened, self.request, self.on_sample = opened, request, on_sample
        self.spec = opened.problem.spec
        self.rung = request.rung
        self.shapes = self.spec.timed_at(max(self.rung.index, SCREEN)) or self.spec.shapes_of(ShapeRole.TUNE)[:1]
        self.rng = random.Random(f"{request.seed}/{request.candidate}/{self.rung.index}")
        self.attachments: list[Attachment] = []
        self.turn = Turn(opened.lock)
        self._asked: _Asked | None = None

    def run(self) -> Evaluated:
        began = time.monotonic()
        outcome = self._outcome()
        outcome = replace(outcome, gpu_s=self.turn.held_s, wall_s=time.monotonic() - began)
        return Evaluated(outcome, tuple(self.attachments))

    def _outcome(self) -> RungOutcome:
        report = self.report = self._compiled()
        base = RungOutcome(report.verdict, 0.0, 0.0, report.resources, self._bound_us(self.shapes[0]))
        if not report.verdict.ok or self.rung.index == COMPILE:
            return base
        try:
            with self.turn:
                return self._twice(base)
        except DeviceError as error:
            return replace(base, verdict=self._ours(Reason.DEVICE_LOST, str(error)))

    def _compiled(self) -> CompileReport:
        static = self.opened.static(self.request.source)
        if not static.ok:
            return CompileReport(static, (), 0.0)
        stages = stages_to_run(self.request.passed_stage, self.rung.gate_stage)
        futures = self.opened.compile(self.request.source, stages)
        if self.rung.index == COMPILE:
            return futures[0].result()
        reports = [f.result() for f in futures]
        return next((r for r in reports if not r.verdict.ok), reports[0])

    def _twice(self, base: RungOutcome) -> RungOutcome:
        """A failure of ours gets a second try with new children; then it is unverified."""
        for _ in range(2):
            try:
                return self._gated_and_timed(base)
            except (RefereeError, OpponentError, EngineError) as error:
                told = str(error)
                self.opened.sides.drop()
        return replace(base, verdict=self._ours(Reason.HARNESS_FAILED, told))

    def _gated_and_timed(self, base: RungOutcome) -> RungOutcome:
        self._asked = None
        try:
            side = self.opened.sides.candidate(self.request.candidate, self.request.source)
        except WorkerFailure as failure:
            return replace(base, verdict=self._theirs(failure, self.rung.gate_stage, "import"))
        outcome = base
        try:
            verdict = self._gate(side)
            outcome = replace(base, verdict=verdict)
            if verdict.ok and self.rung.max_pairs > 0:
                outcome = self._timed(side, verdict, base)
            return outcome
        finally:
            self._leave(side, outcome)

    def _leave(self, side: Side, outcome: RungOutcome) -> None:
        """One that failed may hold all of the device's memory: nothing goes on before it is gone."""
        if not outcome.verdict.ok:
            side.worker.kill()
        elif not self.opened.sides.keeps(side):
            self.opened.zygote.bury(side.worker)

    def _gate(self, side: Side) -> Verdict:
        verdict = verified(max(self.request.passed_stage, 0), Proof.GPU, "passed before")
        for stage in stages_to_run(self.request.passed_stage, self.rung.gate_stage):
            referee = self.opened.sides.referee
            self._asked = self._asked or _Asked(time.monotonic(), referee.worker)
            verdict = run_stage(
                referee, side.client, self.spec, stage, self.request.seed, Proof.GPU, aged=not self._ages_meanwhile
            )
            if not verdict.ok:
                return self.opened.sides.looked_at(verdict)
        return verdict

    @property
    def _ages_meanwhile(self) -> bool:
        """Whether others are timed, which takes seconds, while the process that was gated grows old."""
        return self.rung.process_pairs > 1 and self.rung.max_pairs > 0

    @property
    def _to_be_asked_again(self) -> "_Asked | None":
        """Whose last question was left out when it was gated. That its process is gone by then does not answer it."""
        return self._asked if self._ages_meanwhile and self.rung.gate_stage >= max(STAGES) else None

    def _aged(self, side: Side, asked: "_Asked") -> Verdict:
        """The gate's last question, to a process that has stood still since it was gated: its clocks went on.

        Others may have the GPU until it is old enough. Raises OpponentError where the arena that it sees is gone with
        its referee.
        """
        aged_at = asked.since + drawn_age_s(Proof.GPU)
        if (wait_s := aged_at - time.monotonic()) > 0:
            with self.turn.aside():
                time.sleep(wait_s)
        referee = self.opened.sides.referee
        if referee.worker is not asked.referee:
            raise OpponentError("referee: it was started anew while a candidate waited")
        side.worker.go_on()
        stage, seed = self.rung.gate_stage, self.request.seed
        return run_aged(referee, side.client, self.spec, stage, seed, Proof.GPU, aged_at=aged_at)

    def _timed(self, side: Side, verdict: Verdict, base: RungOutcome) -> RungOutcome:
        log = MatchLog(tuple(s.name for s in self.shapes))
        try:
            unstable = self._play(side, log)
        except FaultError as caught:
            fault = caught.fault
            return replace(base, verdict=rejected(fault.reason, verdict.stage, Proof.GPU, fault.detail))
        except WorkerFailure as failure:
            return replace(base, verdict=self._theirs(failure, verdict.stage, "while timed"))
        if (asked := self._to_be_asked_again) is not None:
            aged = self._aged(side, asked)
            if not aged.ok:
                return replace(base, verdict=self.opened.sides.looked_at(aged))
        self._attach("samples", log)
        too_fast = self._faster_than_chip(log, verdict)
        if too_fast is not None:
            return replace(base, verdict=too_fast)
        comparisons = self._comparisons(log)
        measurement = Measurement(Clock.MEASURED, log.timings(), comparisons, unstable)
        if self.rung.process_pairs <= 1 and _leads(comparisons):
            self.opened.sides.keep(side)
        profile, diagnosis = self._diagnosed(measurement, base.resources)
        return replace(base, verdict=verdict, measurement=measurement, profile=profile, diagnosis=diagnosis)

    def _play(self, side: Side, log: MatchLog) -> str | None:
        if self.rung.process_pairs > 1:
            return self._play_fresh(side, log)
        incumbent = self.request.incumbent or self.request.first
        name = self.request.incumbent.id if self.request.incumbent else "first"
        opponents = (self.opened.sides.kept(name, incumbent.source),) if incumbent else ()
        match = self._match(side, opponents, log)
        match.bind(self.shapes[0])
        with self.opened.zygote.quiet():
            if opponents:
                passes = self._passes()
                match.play(self.shapes, passes, lambda: decide(log.evidence(name), len(passes)) is not Outcome.UNCLEAR)
            else:
                match.alone(self.shapes, ALONE_BLOCKS)
            if self.rung.index > SCREEN:
                match.end_to_end(self.shapes[0])
        match.judge_last()
        return match.unstable

    def _play_fresh(self, gated: Side, log: MatchLog) -> str | None:
        """A new process for every side of every process pair; the one that was gated is not timed, and waits."""
        if self._to_be_asked_again is None:
            gated.worker.kill()
        else:
            gated.client.release(everything=True)
            gated.worker.pause()
            gated.worker.stands_still(STILL_TIMEOUT_S)
        baselines = self._baselines if self.rung.index == CONFIRM else ()
        unstable = [self._process_pair(log, baselines) for _ in range(self.rung.process_pairs)]
        met = [self._compared(log, name) for name in self.request.to_beat]
        unstable += [self._process_pair(log, ()) for _ in range(n_further(self.rung, met))]
        return next(filter(None, unstable), None)

    def _process_pair(self, log: MatchLog, baselines: tuple[str, ...]) -> str | None:
        """A new process of the candidate's in turns with one of everyone it meets; why it should be doubted, if so."""
        with contextlib.ExitStack() as held:
            side, opponents = self._fresh_sides(held, baselines)
            match = self._match(side, opponents, log)
            match.bind(self.shapes[0])
            with self.opened.zygote.quiet():
                if opponents:
                    match.play(self.shapes, self._passes_fresh(), lambda: self._settled(log))
                else:
                    match.alone(self.shapes, ALONE_BLOCKS)
                if not log.end_to_end_us:
                    match.end_to_end(self.shapes[0])
            match.judge_last()
            return match.unstable

    def _fresh_sides(self, held: contextlib.ExitStack, baselines: tuple[str, ...]) -> tuple[Side, tuple[Side, ...]]:
        """All children of one process pair, started at the same time."""
        sides, request = self.opened.sides, self.request
        _ = sides.referee
        with ThreadPoolExecutor(max_workers=8) as threads:
            mine = threads.submit(sides.candidate, request.candidate, request.source)
            others = [threads.submit(sides.opponent, name, o.source) for name, o in request.to_beat.items()]
            others += [threads.submit(sides.baseline, name) for name in baselines]
        started = [future.result().worker for future in (mine, *others) if future.exception() is None]
        held.callback(_kill_all, started)
        return mine.result(), tuple(f.result() for f in others)

    @property
    def _baselines(self) -> tuple[str, ...]:
        """Of those that could be timed, whom this confirmation is to meet."""
        timed, asked = self.opened.baselines, self.request.baselines
        return timed if asked is None else tuple(name for name in timed if name in asked)

    def _match(self, side: Side, opponents: tuple[Side, ...], log: MatchLog) -> Match:
        return self.opened.match(side, opponents, log, self.rng, self.on_sample, self.rung.max_pairs)

    def _passes(self) -> tuple[int, ...]:
        """When to look: after every few pairs of one shape; seldom where looking means changing inputs."""
        if len(self.shapes) == 1:
            return looks(self.rung.max_pairs)
        return (*(n for n in _FEW_LOOKS if n < self.rung.max_pairs), self.rung.max_pairs)

    def _passes_fresh(self) -> tuple[int, ...]:
        return tuple(sorted({min(4, self.rung.max_pairs), min(8, self.rung.max_pairs), self.rung.max_pairs}))

    def _settled(self, log: MatchLog) -> bool:
        return all(settled_within(log.evidence(name)) for name in log.processes[-1])

    def _comparisons(self, log: MatchLog) -> tuple[Comparison, ...]:
        names = list(dict.fromkeys(name for process in log.processes for name in process))
        return self.request.with_first([self._compared(log, name) for name in names])

    def _compared(self, log: MatchLog, name: str) -> Comparison:
        if self.rung.process_pairs > 1:
            return compare_fresh(name, log.evidence(name), self.rung)
        return compare(name, log.evidence(name), len(self._passes()))

    def _faster_than_chip(self, log: MatchLog, verdict: Verdict) -> Verdict | None:
        """With a cold L2 inputs come from memory; only what an L2 holds of the output may still be in it."""
        chip = self.opened.chip
        if not has_data_sheet(chip.name):
            return None
        for shape, timing in zip(self.shapes, log.timings(), strict=True):
            moved = max(0.0, self.spec.bytes_moved(shape) - chip.l2_bytes)
            bound_us = chip.bound_us(moved, self.spec.flops(shape), self.spec.dtype_of(shape))
            if timing.device_us < CHIP_MARGIN * bound_us:
                told = f"{shape.name}: {timing.device_us:.1f} us, but the chip needs {bound_us:.1f} us"
                return rejected(Reason.FASTER_THAN_CHIP, verdict.stage, Proof.GPU, told)
        return None

    def _diagnosed(
        self, measurement: Measurement, resources: tuple[KernelResources, ...]
    ) -> tuple[Profile | None, Diagnosis | None]:
        """Of the shape furthest above the problem's bound and a launch, which no kernel goes without."""
        times = {t.shape: t.device_us for t in measurement.timings}
        launch_us = self.opened.chip.launch_us
        shape = max(self.shapes, key=lambda s: times[s.name] / (self._bound_us(s) + launch_us))
        mine = tuple(r for r in resources if r.shape == shape.name)
        if not mine:
            return None, None
        profile = self._profiled(shape, times[shape.name], mine) if self.rung.profile else None
        n_launches = len(self.report.launches_of(shape.name)) or None
        traced = self._traced(shape, mine) if profile is not None and profile.not_profiled is not None else None
        time_us = times[shape.name]
        return profile, diagnose(self.spec, self.opened.chip, shape, time_us, mine, profile, traced, n_launches)

    def _traced(self, shape: Shape, resources: tuple[KernelResources, ...]) -> ModelledTime | None:
        """What it moves there, for want of counters."""
        traffic = self.opened.traffic
        return traffic.of(self.request.source, shape, resources) if traffic is not None else None

    def _bound_us(self, shape: Shape) -> float:
        return self.spec.bound_us(shape, self.opened.chip)

    def _profiled(self, shape: Shape, time_us: float, resources: tuple[KernelResources, ...]) -> Profile:
        """ncu in a process of its own."""
        cache = self.opened.compiler.cache_of(self.request.source)
        profiler = Profiler(
            self.opened.index, (self.opened.root / "scratch").resolve(), cache, arch=self.opened.chip.arch
        )
        kernels = tuple(dict.fromkeys(r.kernel for r in resources))
        profile, attached = profiler.profile(
            self.opened.problem, self.request.source, shape, self.request.seed, kernels, time_us
        )
        self.attachments.extend(attached)
        return profile

    def _attach(self, name: str, log: MatchLog) -> None:
        text = json.dumps({"candidate": self.request.candidate, "rung": self.rung.index, **log.to_plain()})
        self.attachments.append(Attachment(f"{name}-{self.request.candidate}-r{self.rung.index}.json", text.encode()))

    def _theirs(self, failure: WorkerFailure, stage: int, where: str) -> Verdict:
        if device_is_suspect(failure):
            self.opened.sides.check_device()
        return verdict_of_failure(failure, stage, Proof.GPU, where)

    def _ours(self, reason: Reason, told: str) -> Verdict:
        return unverified(reason, self.rung.gate_stage, Proof.GPU, next(iter(told.splitlines()), "")[:300])


@dataclass(frozen=True, slots=True)
class _Asked:
    """A process that the gate has asked. ``since``: when it first ran, on time.monotonic; ``referee``: whose inputs
    it sees."""

    since: float
    referee: Caller


def _kill_all(workers: list[Worker]) -> None:
    """At the same time: with a GPU's memory mapped the end of one takes as long as many a check."""
    with ThreadPoolExecutor(max_workers=max(1, len(workers))) as threads:
        for worker in workers:
            threads.submit(worker.kill)


def _leads(comparisons: tuple[Comparison, ...]) -> bool:
    """Whether the candidate will be the incumbent: nobody to beat, or beaten."""
    return not comparisons or comparisons[0].outcome is Outcome.FASTER
