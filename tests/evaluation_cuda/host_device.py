"""The CUDA device's own code on a machine without one: real children, real gate, kernels interpreted on the CPU."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.evaluation import Evaluated, EvaluationRequest, Opponent
from kbtui.domain.measurement import Clock, LiveSample
from kbtui.domain.problem import Problem
from kbtui.domain.rung import DEFAULT_LADDER, Rung
from kbtui.evaluation.compile.compiler import Compiler, describe_inputs
from kbtui.evaluation.devices import cuda_sides
from kbtui.evaluation.devices.cuda_evaluation import Evaluation
from kbtui.evaluation.devices.cuda_opened import OpenedProblem
from kbtui.evaluation.devices.cuda_sides import Sides
from kbtui.evaluation.gate.clients import RefereeClient
from kbtui.evaluation.gpu_lock import GpuLock
from kbtui.evaluation.memfd import sealed_memfd
from kbtui.evaluation.nvml import Nvml
from kbtui.evaluation.process import SandboxPolicy, Worker, Zygote, cpu_policy

HERE = Path(__file__).parent
CHIP = replace(DATA_SHEETS["h200"], key="cuda:0", name="a CPU that stands in", clock=Clock.MEASURED)


class HostSides(Sides):
    """Children share a memfd in place of device memory."""

    memfd = -1

    def _start(self, role: str, policy: SandboxPolicy | None) -> Worker:
        _ = self.referee
        return self.zygote.spawn(role, sandbox=policy, fds=(self.memfd,))

    def _start_referee(self) -> Worker:
        worker = self.zygote.spawn(cuda_sides.REFEREE_ROLE, sandbox=None, fds=(self.memfd,))
        RefereeClient(worker, self.problem.spec).open(self.problem)
        return worker


@contextlib.contextmanager
def host_opened(
    problem: Problem, root: Path, compiling: Zygote, call_timeout_s: float = 5.0
) -> Iterator[OpenedProblem]:
    """An OpenedProblem whose GPU is this machine's CPU."""
    with contextlib.ExitStack() as held:
        env = {"PYTHONPATH": f"{HERE.parents[1]}:{HERE}"}
        interpreting = held.enter_context(Zygote(root / "interpreting.log", interpret=True, env=env))
        inputs = describe_inputs(compiling, problem)
        compiler = held.enter_context(Compiler(compiling, CHIP, problem, inputs, root / "compiled", 2, timeout_s=6.0))
        policy = cpu_policy(read=(HERE,), env=(("PYTHONPATH", env["PYTHONPATH"]),))
        sides = HostSides(interpreting, problem, policy, compiler.cache_of, 1 << 34, call_timeout_s, nudges=True)
        HostSides.memfd = sealed_memfd("arena", 64 << 20)
        held.callback(sides.drop)
        yield OpenedProblem(
            problem, CHIP, 0, root, interpreting, compiler, sides, GpuLock("stand-in", root), Nvml(""), 1, ("eager",)
        )


def rung(index: int, **changes: object) -> Rung:
    """Of the default ladder, without further process pairs, which on a busy machine's CPU would come and go."""
    return replace(DEFAULT_LADDER[index], **{"more_process_pairs": 0, **changes})  # type: ignore[arg-type]


def evaluate(
    opened: OpenedProblem, source: str, rung: Rung, incumbent: str | None = None, first: str | None = None,
    passed_stage: int = 0, baselines: tuple[str, ...] | None = None,
) -> tuple[Evaluated, list[LiveSample]]:  # fmt: skip
    live: list[LiveSample] = []
    request = EvaluationRequest(
        "c0002", source, rung, 7, passed_stage,
        Opponent("c0001", incumbent) if incumbent else None, Opponent("c0000", first) if first else None,
        baselines=baselines,
    )  # fmt: skip
    return Evaluation(opened, request, live.append).run(), live
