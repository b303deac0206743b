"""Effects: one problem open on one GPU: its children, compilers, lock and sensors, as an evaluation uses them."""

import random
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from kbtui.domain.device import DeviceSpec
from kbtui.domain.problem import Problem, ShapeRole
from kbtui.domain.verdict import Proof, Verdict
from kbtui.engine.ports import SampleSink
from kbtui.evaluation.compile.compiler import Compiler
from kbtui.evaluation.compile.report import CompileReport
from kbtui.evaluation.devices.cuda_match import Match
from kbtui.evaluation.devices.cuda_sides import Side, Sides
from kbtui.evaluation.devices.static import judged_by_text
from kbtui.evaluation.gate.plan import plan
from kbtui.evaluation.gpu_lock import GpuLock
from kbtui.evaluation.measure.record import MatchLog
from kbtui.evaluation.nvml import Nvml, parent_of
from kbtui.evaluation.process import Zygote
from kbtui.evaluation.profiling.static_traffic import StaticTraffic

#: A reading of the sensors takes milliseconds: what was read after one block stands for the time before the next.
FRESH_S = 0.02


@dataclass(frozen=True, slots=True)
class OpenedProblem:
    """``index`` is the GPU as CUDA counts it outside; ``n_inputs`` the arguments of a call.

    ``baselines``: what a confirmation compares with beside candidates. ``traffic`` says what a kernel moves where
    nothing can count it.
    """

    problem: Problem
    chip: DeviceSpec
    index: int
    root: Path
    zygote: Zygote
    compiler: Compiler
    sides: Sides
    lock: GpuLock
    sensors: Nvml
    n_inputs: int
    baselines: tuple[str, ...]
    traffic: StaticTraffic | None = None

    def static(self, source: str) -> Verdict:
        """Policy, then signature: what the text alone says."""
        return judged_by_text(source, self.problem.spec, self.n_inputs)

    def compile(self, source: str, stages: tuple[int, ...]) -> list[Future[CompileReport]]:
        """Everything that timing and these stages of the gate launch, hidden shapes in a child of their own."""
        futures = [self.compiler.submit(source)]
        checks = [c for stage in stages for c in plan(self.problem.spec, stage, 0, Proof.GPU)]
        hidden = tuple(dict.fromkeys(c.shape.name for c in checks if c.shape.role is ShapeRole.HIDDEN))
        if hidden:
            futures.append(self.compiler.submit(source, hidden))
        return futures

    def match(
        self,
        candidate: Side,
        opponents: tuple[Side, ...],
        log: MatchLog,
        rng: random.Random,
        tell: SampleSink,
        max_pairs: int,
    ) -> Match:
        """One candidate's process against others', with this GPU's sensors watching."""
        compiling = self.sides.compiling
        ours = {self.zygote.pid, *((compiling.pid,) if compiling else ())}

        def trouble() -> str | None:
            state = self.sensors.read(lambda pid: parent_of(pid) in ours)
            if state is None:
                return None
            log.sensors.append(state.reading())
            return state.trouble()

        fresh = lately(trouble, FRESH_S)
        return Match(self.sides, self.problem.spec, candidate, opponents, log, max_pairs, fresh, tell, rng)


def lately(
    ask: Callable[[], str | None], fresh_s: float, clock: Callable[[], float] = time.monotonic
) -> Callable[[], str | None]:
    """The same answer again for so long after it was given."""
    given: list[tuple[float, str | None]] = []

    def answer() -> str | None:
        if not given or clock() - given[0][0] > fresh_s:
            told = ask()
            given[:] = [(clock(), told)]
        return given[0][1]

    return answer
