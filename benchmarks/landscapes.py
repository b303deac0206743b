"""A search space with planted times, noise and costs, on a clock of its own: what the scheduler is studied on.

Costs a rung are the means of searches on an H200 (benchmarks/results, 2026-11-30).
"""

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kbtui.domain.candidate import Origin, Proposal, source_sha
from kbtui.domain.device import DATA_SHEETS, DeviceSpec
from kbtui.domain.evaluation import Evaluated, EvaluationRequest, ProblemReport, RungOutcome
from kbtui.domain.event import Budget, ChildEntry, RunStarted
from kbtui.domain.measurement import Clock, Comparison, Measurement, Outcome, ShapeTiming
from kbtui.domain.problem import Problem, ProblemFormat, ProblemSpec, Shape, Tolerance
from kbtui.domain.proposal import Phase, ProposalRequest
from kbtui.domain.rung import CONFIRM, DEFAULT_LADDER, SCREEN
from kbtui.domain.verdict import Proof, verified
from kbtui.engine.engine import Engine
from kbtui.engine.memory_ledger import MemoryLedger
from kbtui.engine.meter import Meter
from kbtui.scheduler.policy import DEFAULT_POLICY, Policy

N_STRUCTURES, N_PARAMETERS, N_VALUES = 6, 4, 4
COST_S = (0.1, 0.6, 1.6, 11.5, 12.0)
#: Standard deviation of a log ratio on a rung: one process, many pairs, three processes.
NOISE = (0.0, 0.006, 0.004, 0.002, 0.002)
FIRST = "first"
_SPEC = ProblemSpec(
    name="landscape", summary="planted times", dtype="float32", family="landscape", shapes=(Shape("64", (("n", 64),)),),
    distributions=("normal",), bytes_formula="n * itemsize", flops_formula="n", tolerance=Tolerance(1e-6),
)  # fmt: skip
PROBLEM = Problem(_SPEC, ProblemFormat.FOLDER, "landscape", "reference", FIRST)


@dataclass(frozen=True)
class Landscape:
    """Log speedups over the first kernel: a structure's own, plus a gain for each value of each parameter.

    The screening shape agrees with the others but for a term of its own.
    """

    base: tuple[float, ...]
    gains: dict[tuple[int, int, int], float]
    screened: dict[tuple[int, int, int], float]

    @classmethod
    def drawn(cls, seed: int) -> "Landscape":
        rng = random.Random(seed)
        keys = [(s, p, v) for s in range(N_STRUCTURES) for p in range(N_PARAMETERS) for v in range(N_VALUES)]
        return cls(
            base=tuple(rng.gauss(0.35, 0.15) for _ in range(N_STRUCTURES)),
            gains={k: rng.gauss(0.0, 0.05) for k in keys},
            screened={k: rng.gauss(0.0, 0.02) for k in keys},
        )

    def log_speed(self, source: str, screen: bool = False) -> float:
        if source == FIRST:
            return 0.0
        structure, *values = (int(n) for n in source.split())
        at = [(structure, p, v) for p, v in enumerate(values)]
        own = self.base[structure] + sum(self.gains[k] for k in at)
        return own + (sum(self.screened[k] for k in at) if screen else 0.0)

    @property
    def best_log_speed(self) -> float:
        return max(
            self.base[s] + sum(max(self.gains[s, p, v] for v in range(N_VALUES)) for p in range(N_PARAMETERS))
            for s in range(N_STRUCTURES)
        )


@dataclass
class LandscapeDevice:
    """Evaluates on a landscape; every evaluation moves ``now_s`` on by its rung's cost."""

    landscape: Landscape
    spec: DeviceSpec = field(default_factory=lambda: replace(DATA_SHEETS["a100"], key="fake"))
    now_s: float = 0.0
    seconds: dict[int, float] = field(default_factory=dict)

    def open(self, problem: Problem) -> ProblemReport:
        self.now_s += 5.0
        return ProblemReport(family="toy")

    def prefetch(self, source: str) -> None: ...

    def close(self) -> None: ...

    def evaluate(self, request: EvaluationRequest, on_sample: object) -> Evaluated:
        rung = request.rung.index
        self.now_s += COST_S[rung]
        self.seconds[rung] = self.seconds.get(rung, 0.0) + COST_S[rung]
        measurement = self._measured(request) if rung else None
        verdict = verified(request.rung.gate_stage, Proof.GPU)
        return Evaluated(RungOutcome(verdict, COST_S[rung], COST_S[rung], measurement=measurement))

    def _measured(self, request: EvaluationRequest) -> Measurement:
        rung = request.rung.index
        others = [(request.incumbent.id, request.incumbent.source)] if request.incumbent else []
        if request.first and (not others or rung == CONFIRM):
            others.append(("first", request.first.source))
        if request.first and request.incumbent and request.first.id == request.incumbent.id:
            others.append(("first", request.first.source))
        rng = random.Random(f"{request.seed}/{request.source}/{rung}")
        found = tuple(self._compared(name, request.source, source, rung, rng) for name, source in others)
        return Measurement(Clock.MEASURED, (ShapeTiming("64", 1.0, 1.0, 1.0, 1),), found)

    def _compared(self, name: str, mine: str, other: str, rung: int, rng: random.Random) -> Comparison:
        speed = [self.landscape.log_speed(source, rung == SCREEN) for source in (mine, other)]
        seen = speed[0] - speed[1] + rng.gauss(0.0, NOISE[rung])
        half = 2.3 * NOISE[rung]
        outcome = Outcome.FASTER if seen > half else Outcome.SLOWER if seen < -half else Outcome.UNCLEAR
        return Comparison(name, outcome, *(math.exp(seen + d) for d in (0.0, -half, half)), 0.99, 4, 1)


@dataclass
class Grid:
    """Drafts every structure at its defaults, then steps away from a parent: the playbook, without kernels."""

    name: str = "playbook"

    def propose(self, request: ProposalRequest) -> tuple[Proposal, ...]:
        rng = random.Random(request.seed)
        if request.phase is Phase.COARSE:
            wanted = [f"{s} 1 1 1 1" for s in range(N_STRUCTURES)]
        else:
            wanted = _neighbours(request.parent_source or FIRST, rng)
        fresh = [s for s in dict.fromkeys(wanted) if source_sha(s) not in request.seen]
        return tuple(Proposal(s, Origin(self.name, "step"), f"toy/{s.split()[0]}", s) for s in fresh[: request.limit])


def _neighbours(source: str, rng: random.Random) -> list[str]:
    """One parameter one step away, then two parameters, then anything of the structure; each group shuffled."""
    if source == FIRST:
        return []
    structure, *values = (int(n) for n in source.split())
    steps = [(p, v + d) for p, v in enumerate(values) for d in (-1, 1) if 0 <= v + d < N_VALUES]
    rng.shuffle(steps)
    pairs = [(a, b) for i, a in enumerate(steps) for b in steps[i + 1 :] if a[0] != b[0]]
    rng.shuffle(pairs)
    moves = [(step,) for step in steps] + list(pairs)
    changed = [[dict(move).get(p, v) for p, v in enumerate(values)] for move in moves]
    far = list(itertools.product(range(N_VALUES), repeat=N_PARAMETERS))
    rng.shuffle(far)
    return [" ".join(map(str, (structure, *new))) for new in (*changed, *far)]


def search(seed: int, wall_s: float, policy: Policy = DEFAULT_POLICY) -> tuple[Engine, LandscapeDevice]:
    """A finished search of ``wall_s`` simulated seconds on landscape ``seed``."""
    device, ledger = LandscapeDevice(Landscape.drawn(seed)), MemoryLedger()
    begin = RunStarted(
        "landscape-1", PROBLEM.spec.name, PROBLEM.path, "0", device.spec, seed, Budget(wall_s=wall_s), ("playbook",),
        None, ChildEntry.PARENT, DEFAULT_LADDER,
    )  # fmt: skip
    ledger.append(begin, 0.0, 0.0)
    meter = Meter(ledger.spent(), now_s=lambda: device.now_s)
    choose: Callable[..., tuple[()]] = lambda _state, _action: ()  # noqa: E731
    engine = Engine(PROBLEM, ledger, device, {"playbook": Grid()}, choose, meter, lambda _e, _s: None, policy)
    engine.run()
    return engine, device


def regret(engine: Engine, device: LandscapeDevice) -> float:
    """How much slower the champion is than the best there is, as a log ratio; all of it where there is none."""
    state = engine.state
    champion = state.tried[state.champion].candidate.summary if state.champion else FIRST
    return device.landscape.best_log_speed - device.landscape.log_speed(champion)
