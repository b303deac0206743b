"""Effects: a CUDA GPU as a device: gates, times and profiles candidates in children, holds the GPU's lock meanwhile.

torch is never imported here; everything that touches the GPU is a child of the zygote.
"""

import contextlib
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from kbtui.cores import cores
from kbtui.domain.device import DeviceSpec
from kbtui.domain.evaluation import Baseline, Evaluated, EvaluationRequest, ProblemReport
from kbtui.domain.measurement import Clock, Measurement
from kbtui.domain.problem import Problem, ShapeRole
from kbtui.domain.verdict import Proof
from kbtui.domain.vetting import Vetting
from kbtui.engine.ports import SampleSink
from kbtui.errors import DeviceError, EngineError, KbtuiError, UsageError
from kbtui.evaluation.baselines import CEILINGS, COMPILED, EAGER, TUNED
from kbtui.evaluation.compile.compiler import Compiler, describe_inputs
from kbtui.evaluation.devices.cuda_chip import spec_of, visible_device
from kbtui.evaluation.devices.cuda_evaluation import ALONE_BLOCKS, Evaluation
from kbtui.evaluation.devices.cuda_gates import WholeGates
from kbtui.evaluation.devices.cuda_opened import OpenedProblem
from kbtui.evaluation.devices.cuda_sides import OpponentError, Sides
from kbtui.evaluation.family import family_of
from kbtui.evaluation.gate.clients import RefereeError
from kbtui.evaluation.gate.plan import STAGES, n_elements
from kbtui.evaluation.gpu_lock import GpuLock
from kbtui.evaluation.measure.record import MatchLog
from kbtui.evaluation.nvml import Nvml
from kbtui.evaluation.process import WorkerFailure, Zygote, cuda_policy, preload, probe
from kbtui.evaluation.profiling.static_traffic import StaticTraffic
from kbtui.evaluation.vetting.vet import vet

PRIMER_ROLE = "kbtui.evaluation.roles.primer"
CALL_TIMEOUT_S = 5.0
COMPILE_TIMEOUT_S = 40.0
_START_TIMEOUT_S = 120.0
#: A spare's context, flush buffer and modules take about this much of the GPU's memory.
_SPARE_BYTES, _MOST_SPARES = 3 << 30, 8
#: One more warms up beside the others for so many cores. The driver makes contexts one after the other, for the whole
#: machine: measured, five at once are ready no sooner than three, and whoever is checked meanwhile waits longer.
_CORES_A_SPARE, _MOST_AT_ONCE = 3, 3
_MOST_COMPILING = 8
#: The driver gives every context its own queues, eight unless told, and has to make and to end each. A candidate works
#: on one stream, for which one will do. Who sets the variable gets what it says; PyTorch keeps its default.
QUEUES = "CUDA_DEVICE_MAX_CONNECTIONS"


class CudaDevice:
    """``cuda:N``. ``prefetch`` compiles while others are evaluated. Of several threads in ``evaluate`` one has the GPU
    at a time; what another waits for meanwhile, it waits for without it.

    ``baselines``: what is timed when a problem is opened; those that could be are compared with at a confirmation.
    With ``timed_at_opening`` false none is: then ``ready`` says which of them are compared with.
    Raises DeviceError where there is no such device.
    """

    def __init__(
        self,
        key: str,
        workspace: Path,
        *,
        call_timeout_s: float = CALL_TIMEOUT_S,
        compile_timeout_s: float = COMPILE_TIMEOUT_S,
        spares: int | None = None,
        spares_at_once: int | None = None,
        baselines: tuple[str, ...] = (EAGER,),
        timed_at_opening: bool = True,
    ) -> None:
        self._index = int(key.partition(":")[2] or 0)
        self._root = workspace
        self._call_timeout_s, self._baselines = call_timeout_s, baselines if timed_at_opening else ()
        self._compile_timeout_s = compile_timeout_s
        self._held = contextlib.ExitStack()
        self._opened: OpenedProblem | None = None
        visible = visible_device(self._index, os.environ)
        self._env = {
            "CUDA_VISIBLE_DEVICES": visible, "KBTUI_DEVICE": "cuda", "TRITON_CACHE_DIR": str(self._cache("driver")),
        }  # fmt: skip
        self._zygote = Zygote(workspace / "scratch" / "zygote.log", interpret=False, env=self._env)
        self._compiling: Zygote | None = None
        try:
            if any(name in COMPILED for name in baselines):
                self._compiling = self._zygote_of_compilers()
            self.spec = self._look(key)
        except BaseException:
            self.close()
            raise
        self._spares = (
            min(_MOST_SPARES, max(2, self.spec.memory_bytes // _SPARE_BYTES)) if spares is None else spares,
            max(2, min(_MOST_AT_ONCE, cores() // _CORES_A_SPARE)) if spares_at_once is None else spares_at_once,
        )
        self._lock = GpuLock(self.spec.uuid or f"{self._index}")
        self._nvml = Nvml(self.spec.uuid or "")

    def await_start(self) -> None:
        """Return once all that starts children is there, and stands still until it is asked."""
        with contextlib.suppress(EngineError):
            if self._compiling is not None:
                self._compiling.await_ready()

    def open(self, problem: Problem) -> ProblemReport:
        """Start the referee, spares and compilers; find the family; time PyTorch. See the port."""
        self.close_problem()
        began = time.monotonic()
        opened = self._assemble(problem)
        with self._lock.held():
            family = _family(opened)
            opened.sides.spares(*self._spares)
            baselines = tuple(time_baseline(opened, name) for name in self._baselines)
        timed = tuple(b.name for b in baselines if b.measurement or b.name == EAGER)  # eager failed by chance: again
        self._opened = replace(opened, baselines=timed)
        notes = tuple(f"{p.name}: {p.detail}" for p in probe() if not p.enforced)
        return ProblemReport(family, baselines, notes, time.monotonic() - began)

    def vet(self, problem: Problem, allclose: float | None = None) -> Vetting:
        """See ``ports.Vets``: the null kernels' answers are computed and judged on this GPU."""
        with self._lock.held():
            return vet(self._zygote, problem, self.spec, Proof.GPU, allclose)

    def prefetch(self, source: str, stages: tuple[int, ...] = (1,)) -> None:
        """Compile for the timed shapes, and for the hidden ones that these stages of the gate run, each by itself."""
        self._compile_ahead(source, *((stage,) for stage in stages))

    def compile_for_gate(self, source: str) -> None:
        """As ``prefetch`` does, with the hidden shapes of every stage together, as ``whole_gates`` asks for them."""
        self._compile_ahead(source, STAGES)

    def _compile_ahead(self, source: str, *requests: tuple[int, ...]) -> None:
        if self._opened is not None:
            with contextlib.suppress(KbtuiError, RuntimeError):
                if self._opened.static(source).ok:
                    for stages in requests:
                        self._opened.compile(source, stages)

    def evaluate(self, request: EvaluationRequest, on_sample: SampleSink) -> Evaluated:
        """See the port. Never raises for a candidate's failure or for one of ours."""
        if self._opened is None:
            raise EngineError("no problem is open on this device", "open one first")
        return Evaluation(self._opened, request, on_sample).run()

    def whole_gates(self, seed: int = 0, alone: bool = False) -> WholeGates:
        """For many candidates of the open problem, none of which is to be timed. ``alone``: see there."""
        if self._opened is None:
            raise EngineError("no problem is open on this device", "open one first")
        return WholeGates(self._opened, seed, alone)

    def ready(self, names: tuple[str, ...]) -> tuple[Baseline, ...]:
        """Start each of these baselines once, and compare with those that could be from now on.

        What they compile is in a cache then, from which later processes of theirs have it. Who chooses by times of its
        own is started while nothing else runs here.
        """
        opened = self._opened
        if opened is None:
            raise EngineError("no problem is open on this device", "open one first")
        with self._lock.held(), ThreadPoolExecutor(max_workers=_MOST_AT_ONCE) as threads:
            quick = tuple(name for name in names if name not in TUNED)
            found = dict(zip(quick, threads.map(lambda name: ready_baseline(opened, name), quick), strict=True))
            for name in names:
                if name not in found:
                    with opened.zygote.quiet():
                        found[name] = ready_baseline(opened, name)
        there = tuple(name for name in names if found[name].error is None and name not in opened.baselines)
        self._opened = replace(opened, baselines=(*opened.baselines, *there))
        return tuple(found[name] for name in names)

    def leave_out(self, baseline: str) -> None:
        """Compare no more with a baseline that broke."""
        if self._opened is not None:
            left = tuple(name for name in self._opened.baselines if name != baseline)
            self._opened = replace(self._opened, baselines=left)

    def close_problem(self) -> None:
        """End the children of the problem that is open, if any; nothing of ours is on the GPU then. Idempotent."""
        self._held.close()
        self._opened = None

    def close(self) -> None:
        """End every child. Idempotent."""
        self.close_problem()
        self._zygote.close()
        if self._compiling is not None:
            self._compiling.close()

    def _assemble(self, problem: Problem) -> OpenedProblem:
        inputs = describe_inputs(self._zygote, problem)
        workers = max(1, cores() - 2)
        compiler = self._held.enter_context(
            Compiler(
                self._zygote,
                self.spec,
                problem,
                inputs,
                self._cache("compiled"),
                workers,
                launchers=True,
                timeout_s=self._compile_timeout_s,
            )
        )
        env = (*self._env.items(), (QUEUES, os.environ.get(QUEUES, "1")))
        policy = cuda_policy(read=(self._cache("driver"),), env=env)
        memory = self.spec.memory_bytes

        def compiled_cache(source: str) -> Path:
            """Where its kernels lie, once they do: an opponent may come from a run that was resumed."""
            compiler.submit(source).result()
            return compiler.cache_of(source)

        sides = Sides(
            self._zygote, problem, policy, compiled_cache, memory, self._call_timeout_s, compiling=self._compiling
        )  # fmt: skip
        self._held.callback(sides.drop)
        n_inputs = max((len(a) for a in inputs.arguments.values()), default=0)
        traffic = StaticTraffic(problem.spec, self.spec, inputs, self._root / "scratch" / "interpreter.log")
        self._held.callback(traffic.close)
        return OpenedProblem(
            problem, self.spec, self._index, self._root, self._zygote, compiler, sides, self._lock, self._nvml,
            n_inputs, self._baselines, traffic,
        )  # fmt: skip

    def _zygote_of_compilers(self) -> Zygote:
        """No candidate is a child of it: what torch.compile imports is nothing that one should find around."""
        own = {preload.CHOICE: preload.COMPILE, "TORCHINDUCTOR_CACHE_DIR": str(self._cache("inductor"))}
        return Zygote(self._root / "scratch" / "compilers.log", interpret=False, env=self._env | own)

    def _look(self, key: str) -> DeviceSpec:
        """What the GPU is, and a cache in which confined children find Triton's helpers."""
        try:
            with self._zygote.spawn(PRIMER_ROLE, sandbox=None) as primer:
                properties = primer.call("properties", timeout_s=_START_TIMEOUT_S).value
                launch_us = primer.call("prime", timeout_s=_START_TIMEOUT_S, cache=str(self._cache("driver"))).value
        except (WorkerFailure, EngineError) as failure:
            told = next(iter(str(failure).strip().splitlines()), "no reason given")[:200]
            raise DeviceError(f"{key} cannot be used: {told}", "run kbtui doctor, or use --device model:a100") from None
        return replace(spec_of(key, properties), launch_us=round(float(launch_us), 2))

    def _cache(self, name: str) -> Path:
        folder = (self._root / "cache" / name).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        return folder


def _family(opened: OpenedProblem) -> str | None:
    """Runs the reference once: raises UsageError where it fails."""
    problem = opened.problem
    smallest = min(problem.spec.shapes_of(ShapeRole.PROXY) or problem.spec.shapes, key=n_elements)
    try:
        referee = opened.sides.referee
        referee.prepare(smallest, problem.spec.distributions[0], [0])
    except RefereeError as error:
        told = next(iter(str(error).strip().splitlines()), "no reason given")[:200]
        raise UsageError(f"the reference of {problem.spec.name} failed: {told}", f"correct {problem.path}") from None
    if problem.spec.family:
        return problem.spec.family
    with contextlib.suppress(RefereeError):
        return family_of(referee.operations(smallest))
    return None


def compile_threads() -> int:
    """Processes that torch.compile may have where it has yet to try what it chooses from."""
    return max(1, min(_MOST_COMPILING, cores() // 2))


def ready_baseline(opened: OpenedProblem, name: str) -> Baseline:
    """What has nothing to compile, nor anything that may be missing, is taken to be there."""
    if name == EAGER or name in CEILINGS:
        return Baseline(name, None)
    try:
        opened.sides.baseline(name, compile_threads() if name in TUNED else 1).worker.kill()
    except OpponentError as error:
        return Baseline(name, None, str(error)[:300])
    return Baseline(name, None)


def time_baseline(opened: OpenedProblem, name: str) -> Baseline:
    """One of ``evaluation.baselines`` on every timed shape; ``error`` says why it could not be had."""
    shapes = opened.problem.spec.shapes_of(ShapeRole.TUNE)
    log = MatchLog(tuple(s.name for s in shapes))
    try:
        side = opened.sides.baseline(name, compile_threads())
    except OpponentError as error:
        return Baseline(name, None, str(error)[:300])
    with side.worker, opened.zygote.quiet():
        match = opened.match(side, (), log, random.Random(0), lambda _: None, 0)
        match.judged = False
        try:
            match.alone(shapes, ALONE_BLOCKS)
        except (WorkerFailure, RefereeError) as error:
            return Baseline(name, None, str(error)[:300])
    return Baseline(name, Measurement(Clock.MEASURED, log.timings(), (), match.unstable))
