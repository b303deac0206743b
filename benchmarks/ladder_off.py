"""One search twice on one device: with the ladder, and with every candidate at full fidelity as soon as it compiles.

    python benchmarks/ladder_off.py --device cuda:0 [--case softmax-4096x16384-fp32] [--seconds 40] [--off-seconds 70]
                                    [--seed 0] [--out benchmarks/results/ladder-off-softmax.json]

Both are the engine's own search of a case of the six benchmarks, with playbook and rewrites and the same seed. Without
the ladder a candidate that compiles goes through the whole gate and a confirmation (three fresh process pairs) before
anything is decided about it; the rungs above have then nothing to add, cost nothing, and read the same result. Asked is
when each first held, as the best it would hand over, a kernel whose speedup over the first kernel is, at full fidelity,
within 2 % of what the search with the ladder ended with; opening included, and a kernel that neither search measured at
full fidelity does not count. The second search ends there, or at its limit. It runs after the other, whose compiled
files it finds: what the ladder saves is rather told too small. Effects: a device; writes one file of JSON.
"""

import argparse
import json
import math
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.six.cases import chosen, load_cases, write_problem
from benchmarks.six.search import GENERATORS
from benchmarks.six.story import CLOSE
from hints import load_hints
from kbtui.console import tell
from kbtui.domain.codec import to_plain
from kbtui.domain.device import DeviceSpec
from kbtui.domain.evaluation import Evaluated, EvaluationRequest, ProblemReport
from kbtui.domain.event import Budget, ChildEntry, Envelope, RungCompleted, RunStarted, Spent
from kbtui.domain.measurement import Comparison, Outcome
from kbtui.domain.problem import Problem
from kbtui.domain.rung import COMPILE, CONFIRM, DEFAULT_LADDER, SCREEN
from kbtui.engine.engine import Engine
from kbtui.engine.memory_ledger import MemoryLedger
from kbtui.engine.ports import Device, SampleSink
from kbtui.engine.replaying import generators_on, meter_on, problem_on
from kbtui.engine.session import hint_chooser
from kbtui.engine.spec import RunSpec
from kbtui.errors import EngineError, KbtuiError
from kbtui.evaluation.devices import open_device
from kbtui.evaluation.devices.cuda import CudaDevice
from kbtui.evaluation.devices.environment import environment_of
from kbtui.problems import load_problem
from kbtui.scheduler.best import best_so_far
from kbtui.scheduler.state import RunState, problem_sha

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


@dataclass(slots=True)
class Searched:
    """What one search held as its best after each event: (wall s, GPU s, the kernel's SHA-256); and how it ended.

    ``full``: scores at full fidelity, by SHA-256; ``n_timed``: evaluations that timed something.
    """

    points: list[tuple[float, float, str]] = field(default_factory=list)
    full: dict[str, float] = field(default_factory=dict)
    n_timed: int = 0
    state: RunState = field(default_factory=RunState)

    def note(self, envelope: Envelope, state: RunState, all_full: bool) -> float | None:
        """Returns the score at full fidelity, if one came with it. Who is all at full fidelity holds the best of it."""
        self.state, score = state, self._scored(envelope, state, all_full)
        best = best_so_far(state)
        held = max(self.full, key=self.full.__getitem__, default=None) if all_full else None
        held = held or (best.candidate.source_sha if best else None)
        if held is not None:
            self.points.append((envelope.wall_s, envelope.gpu_s, held))
        return score

    def _scored(self, envelope: Envelope, state: RunState, all_full: bool) -> float | None:
        event = envelope.event
        if not isinstance(event, RungCompleted) or event.rung < SCREEN or event.score is None:
            return None
        self.n_timed += 1
        if not (all_full or event.rung == CONFIRM) or not event.outcome.verdict.ok:
            return None
        return self.full.setdefault(state.tried[event.candidate].candidate.source_sha, event.score)


@dataclass(frozen=True, slots=True)
class Found:
    """What a search came to. ``within_wall_s``, ``within_gpu_s``: when it first held what was asked; None: never.

    ``score``: the best at full fidelity, as a speedup over the first kernel.
    """

    wall_s: float
    gpu_s: float
    n_candidates: int
    n_timed: int
    score: float
    within_wall_s: float | None
    within_gpu_s: float | None
    ended: str


@dataclass(slots=True)
class Searcher:
    """Searches of one problem on one device."""

    device: Device
    problem: Problem
    seed: int

    def run(self, seconds: float, through: Device | None = None, until: float = math.inf) -> Searched:
        """``through``: behind which the device is; ``until``: a score at full fidelity at which it is interrupted."""
        ledger, searched = MemoryLedger(), Searched()
        begin = RunStarted(
            "ladder", self.problem.spec.name, self.problem.path, problem_sha(self.problem), self.device.spec,
            self.seed, Budget(wall_s=seconds), tuple(GENERATORS.split(",")), None, ChildEntry.PARENT, DEFAULT_LADDER,
        )  # fmt: skip
        ledger.append(begin, 0.0, 0.0)

        def narrate(envelope: Envelope, state: RunState) -> None:
            score = searched.note(envelope, state, all_full=through is not None)
            if score is not None and score >= until:
                engine.interrupt("as good as the other")

        engine = Engine(
            self.problem, ledger, through or self.device,
            generators_on(self.device, begin, RunSpec("", self.problem.path, seed=self.seed)),
            hint_chooser(self.problem, load_hints()), meter_on(self.device, Spent()), narrate,
        )  # fmt: skip
        engine.run()
        return searched


def found(searched: Searched, full: dict[str, float], asked: float) -> Found:
    """``full``: what is known of kernels at full fidelity, from either search."""
    first = next(((wall_s, gpu_s) for wall_s, gpu_s, sha in searched.points if full.get(sha, 0.0) >= asked), None)
    state = searched.state
    return Found(
        round(state.wall_s, 2), round(state.gpu_s, 2), len(state.tried), searched.n_timed,
        round(max(searched.full.values(), default=0.0), 4),
        round(first[0], 2) if first else None, round(first[1], 2) if first else None,
        f"{state.ended.reason}: {state.ended.detail}" if state.ended else "not ended",
    )  # fmt: skip


def both(searcher: Searcher, seconds: float, off_seconds: float) -> tuple[Found, Found]:
    """With the ladder, then without. Raises EngineError where the first confirmed nothing."""
    on = searcher.run(seconds)
    best = best_so_far(on.state)
    score = on.full.get(best.candidate.source_sha) if best else None
    if score is None:
        raise EngineError("the search with the ladder confirmed nothing", "give it more time: --seconds")
    tell(f"with the ladder: {score:.3f}x after {on.state.wall_s:.0f} s")
    asked = score / (1 + CLOSE)
    off = searcher.run(off_seconds, FullAtOnce(searcher.device), asked)
    full = off.full | on.full
    return found(on, full, asked), found(off, full, asked)


def report(options: argparse.Namespace, searcher: Searcher, on: Found, off: Found) -> dict[str, Any]:
    share = on.within_wall_s / off.within_wall_s if on.within_wall_s and off.within_wall_s else None
    return {
        "sample": options.case,
        "command": f"python {' '.join(sys.argv)}",
        "date": time.strftime("%Y-%m-%d %H:%MZ", time.gmtime()),
        "device": to_plain(searcher.device.spec),
        "environment": environment_of(searcher.device.spec),
        "seed": options.seed,
        "share_of_time": share,
        "on": to_plain(on),
        "off": to_plain(off),
    }


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--case", default="softmax-4096x16384-fp32")
    parser.add_argument("--seconds", type=float, default=40.0, help="budget of the search with the ladder")
    parser.add_argument("--off-seconds", type=float, default=70.0, help="limit of the one without")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(words)
    try:
        case = chosen(load_cases(), [options.case])[0]
        options.case = case.name
        with tempfile.TemporaryDirectory(prefix="kbtui-ladder-") as root:
            device = open_device(options.device, Path(root) / "workspace")
            try:
                problem = problem_on(device, load_problem(str(write_problem(case, Path(root) / "problem"))))
                searcher = Searcher(device, problem, options.seed)
                made = report(options, searcher, *both(searcher, options.seconds, options.off_seconds))
            finally:
                device.close()
    except KbtuiError as error:
        tell(f"ladder_off: {error}")
        return int(error.exit_code)
    options.out.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    tell(json.dumps({name: made[name] for name in ("share_of_time", "on", "off")}, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
