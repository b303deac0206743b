"""Fakes of the engine's ports: a device with planted speeds, a generator of numbered structures."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kbtui.domain.candidate import Origin, Proposal, source_sha
from kbtui.domain.device import DATA_SHEETS, DeviceSpec
from kbtui.domain.evaluation import Evaluated, EvaluationRequest, ProblemReport, RungOutcome
from kbtui.domain.event import Budget, ChildEntry, RunStarted
from kbtui.domain.measurement import Clock, Comparison, Measurement, Outcome, ShapeTiming
from kbtui.domain.problem import Problem, ProblemFormat, ProblemSpec, Shape, Tolerance
from kbtui.domain.proposal import Phase, ProposalRequest
from kbtui.domain.rung import DEFAULT_LADDER
from kbtui.domain.verdict import Proof, Reason, rejected, verified
from kbtui.engine.engine import Engine
from kbtui.engine.memory_ledger import MemoryLedger
from kbtui.engine.meter import Meter

SPEC = ProblemSpec(
    name="toy",
    summary="a toy",
    dtype="float32",
    family="toy",
    shapes=(Shape("64", (("n", 64),)),),
    distributions=("normal",),
    bytes_formula="n * itemsize",
    flops_formula="n",
    tolerance=Tolerance(1e-6),
)
PROBLEM = Problem(SPEC, ProblemFormat.FOLDER, "toy", "reference", "structure=0 tune=0")


def fields_of(source: str) -> dict[str, int]:
    return {key: int(value) for key, value in (pair.split("=") for pair in source.split())}


def planted_us(source: str) -> float:
    """Structure 2 is the best basin but starts slow: 130 us untuned, 60 us tuned; structure 1 goes from 90 to 80."""
    at = fields_of(source)
    start, gain = {0: (100.0, 0.0), 1: (90.0, 5.0), 2: (130.0, 14.0)}[at["structure"]]
    return start - gain * min(at["tune"], 5)


@dataclass
class PlantedDevice:
    """Times are ``planted_us`` exactly; structure 1 with ``tune=3`` is wrong. Rung r costs r GPU seconds."""

    spec: DeviceSpec = field(default_factory=lambda: replace(DATA_SHEETS["a100"], key="fake"))
    evaluated: list[tuple[str, int]] = field(default_factory=list)

    def open(self, problem: Problem) -> ProblemReport:
        return ProblemReport(family="toy")

    def prefetch(self, source: str) -> None: ...

    def close(self) -> None: ...

    def evaluate(self, request: EvaluationRequest, on_sample: object) -> Evaluated:
        self.evaluated.append((request.candidate, request.rung.index))
        at, stage = fields_of(request.source), request.rung.gate_stage
        if at["structure"] == 1 and at["tune"] == 3 and request.rung.index > 0:
            wrong = rejected(Reason.WRONG_VALUES, stage, Proof.INTERPRETER, "relative L2 error 0.34")
            return Evaluated(RungOutcome(wrong, gpu_s=0.1, wall_s=0.0))
        measurement = self._measure(request) if request.rung.max_pairs else None
        verdict = verified(stage, Proof.INTERPRETER)
        cost_s = float(request.rung.index)
        return Evaluated(RungOutcome(verdict, gpu_s=cost_s, wall_s=0.0, measurement=measurement))

    def _measure(self, request: EvaluationRequest) -> Measurement:
        own_us = planted_us(request.source)
        others = [(o.id, o.source) for o in (request.incumbent,) if o]
        if request.first:
            others.append(("first", request.first.source))
        comparisons = tuple(_compare(name, planted_us(source) / own_us) for name, source in others)
        return Measurement(Clock.MODELLED, (ShapeTiming("64", own_us, own_us, own_us, 1),), comparisons)


def _compare(against: str, ratio: float) -> Comparison:
    outcome = Outcome.FASTER if ratio > 1.001 else Outcome.SLOWER if ratio < 0.999 else Outcome.TIE
    return Comparison(against, outcome, ratio, ratio, ratio, 1.0, 1, 1)


class Numbered:
    """Drafts structures 1 and 2, then tunes a parent one step at a time."""

    def __init__(self, name: str) -> None:
        self.name = name

    def propose(self, request: ProposalRequest) -> tuple[Proposal, ...]:
        if request.phase is Phase.COARSE:
            wanted = [(1, 0), (2, 0)]
        else:
            at = fields_of(request.parent_source or "")
            wanted = [(at["structure"], at["tune"] + 1)] if at["tune"] < 5 else []
        sources = [f"structure={s} tune={t}" for s, t in wanted]
        return tuple(
            Proposal(s, Origin(self.name, "step"), f"toy/{fields_of(s)['structure']}", s)
            for s in sources
            if source_sha(s) not in request.seen
        )[: request.limit]


def started(budget: Budget) -> RunStarted:
    return RunStarted(
        run="toy-1",
        problem="toy",
        problem_path="toy",
        problem_sha="0",
        device=PlantedDevice().spec,
        seed=0,
        budget=budget,
        generators=("playbook",),
        model=None,
        child_entry=ChildEntry.PARENT,
        ladder=DEFAULT_LADDER,
    )


def engine_on(
    ledger: MemoryLedger, device: PlantedDevice, budget: Budget | None = None, now_s: Callable[[], float] = lambda: 0.0
) -> Engine:
    if not ledger.log:
        ledger.append(started(budget or Budget()), 0.0, 0.0)
    meter = Meter(ledger.spent(), now_s=now_s)
    generators = {"playbook": Numbered("playbook")}
    return Engine(PROBLEM, ledger, device, generators, lambda s, a: (), meter, lambda e, s: None)
