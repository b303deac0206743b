"""A believable softmax run on an H200 as a list of envelopes: forty candidates, one running, one champion.

Deterministic. Times are invented but of the size measured on the chip.
"""

import json
import random
from dataclasses import replace

from recorded_plans import PLANS, Plan, plans
from softmax_kernels import source

from kbtui.domain.candidate import ArtifactRef, Candidate, Origin, candidate_id, source_sha
from kbtui.domain.device import DATA_SHEETS, DeviceSpec
from kbtui.domain.evaluation import Baseline, ProblemReport, RungOutcome
from kbtui.domain.event import (
    Budget,
    CandidateAdmitted,
    ChildEntry,
    Decision,
    EndReason,
    Envelope,
    Event,
    ProblemOpened,
    ProposalsMade,
    RunEnded,
    RungCompleted,
    RunStarted,
)
from kbtui.domain.measurement import Clock, Comparison, LiveSample, Measurement, Outcome, ShapeRatio, ShapeTiming
from kbtui.domain.problem import ProblemSpec, Shape, Tolerance
from kbtui.domain.profile import Bottleneck, Diagnosis, Evidence, Finding, KernelResources, Profile
from kbtui.domain.proposal import Hint, Space
from kbtui.domain.rung import CONFIRM, DEFAULT_LADDER, PROFILE, SCREEN
from kbtui.domain.verdict import Proof, Verdict, verified

RUN = "softmax-7"
SHAPES = ("4096x16384", "16x16384", "4096x65536")
EAGER_US = (177.0, 10.2, 1051.0)
COMPILE_US = (157.0, 11.9, 779.0)
#: Bytes moved once over the data sheet's 4.8 TB/s.
BOUND_US = (111.85, 0.437, 447.39)
PROMPT_SHA = source_sha("prompt")
REPLY_SHA = source_sha("reply")
SAMPLES_SHA = source_sha("samples")


#: What the problem's folder declares, as it was when the run was recorded.
SPEC = ProblemSpec(
    name="softmax",
    summary="row softmax",
    dtype="float32",
    family="row_reduction",
    shapes=tuple(
        Shape(name, tuple(zip(("n_rows", "n_cols"), map(int, name.split("x")), strict=True))) for name in SHAPES
    ),
    distributions=("normal",),
    bytes_formula="2 * n_rows * n_cols * itemsize",
    flops_formula="5 * n_rows * n_cols",
    tolerance=Tolerance(1e-6),
)
HINTS = tuple(
    Hint(name, space, "", (), (Bottleneck.DRAM.value,), ())
    for name, space in (
        ("evict_first_on_streams", Space.MEMORY),
        ("larger_tiles", Space.TILING),
        ("persistent_programs", Space.LAUNCH),
    )
)


class Recorder:
    """Plays the plans through the ladder and notes every event."""

    def __init__(self, device: DeviceSpec, budget: Budget) -> None:
        self.modelled = device.clock is Clock.MODELLED
        self.device = device
        self.envelopes: list[Envelope] = []
        self.sources: dict[str, str] = {}
        self.wall_s = 0.0
        self.gpu_s = 0.0
        self.rng = random.Random(7)
        self.incumbents: dict[int, int] = {}
        self.champion: int | None = None
        self.note(
            RunStarted(
                RUN, "softmax", "sample_kernels/softmax", source_sha("softmax"), device, 0, budget,
                ("playbook", "rewrites", "llm"), "qwen2.5-coder:7b", ChildEntry.PARENT, DEFAULT_LADDER,
            )
        )  # fmt: skip
        eager, compiled = (
            Measurement(
                device.clock,
                tuple(ShapeTiming(s, t, t * 0.995, t * 1.006, 40) for s, t in zip(SHAPES, times, strict=True)),
            )
            for times in (EAGER_US, COMPILE_US)
        )
        baselines = () if self.modelled else (Baseline("eager", eager), Baseline("compile", compiled))
        self.note(ProblemOpened(ProblemReport("row_reduction", baselines)), 9.1, 2.0)

    def note(self, event: Event, wall_s: float = 0.0, gpu_s: float = 0.0) -> None:
        self.wall_s += wall_s
        self.gpu_s += 0.0 if self.modelled else gpu_s
        at = f"2026-11-30T02:{int(self.wall_s // 60):02}:{int(self.wall_s % 60):02}Z"
        self.envelopes.append(Envelope(len(self.envelopes), at, self.wall_s, self.gpu_s, event))

    def admit(self, number: int, plan: Plan, entry_rung: int = SCREEN) -> None:
        text = source(plan.structure, **plan.options)  # type: ignore[arg-type]
        if any(text == known for known in self.sources.values()):
            text += f"\n# {plan.summary}\n"
        sha = source_sha(text)
        self.sources[sha[:40]] = text
        params = tuple((k, str(v)) for k, v in plan.options.items())
        origin = Origin(plan.generator, plan.operator, plan.hint, params)
        parents = (candidate_id(plan.parent),) if plan.parent else ()
        candidate = Candidate(candidate_id(number), sha, parents, origin, f"softmax/{plan.structure}", plan.summary)
        self.note(CandidateAdmitted(candidate, entry_rung, sha[:40]), 0.1)

    def climb(self, number: int, plan: Plan, to: int = CONFIRM) -> None:
        """Take a candidate up the ladder until it fails, is pruned, or ``to`` is done."""
        for rung in range(to + 1):
            event = self.evaluate(number, plan, rung)
            self.note(event, event.outcome.wall_s, event.outcome.gpu_s)
            if event.new_incumbent:
                self.incumbents[rung] = number
            if event.decision is Decision.CROWN:
                self.champion = number
            if event.decision is not Decision.PROMOTE:
                return

    def evaluate(self, number: int, plan: Plan, rung: int) -> RungCompleted:
        name = candidate_id(number)
        stage = DEFAULT_LADDER[rung].gate_stage
        if plan.fails is not None and plan.fails.stage == stage:
            return self._failed(name, plan.fails, rung)
        cost = (0.4, 1.2, 9.0, 30.0, 34.0)[rung]
        proof = Proof.NONE if rung == 0 else Proof.INTERPRETER if self.modelled else Proof.GPU
        verdict = verified(stage, proof, "3 distributions, 5 shapes" if rung else "", 1.2e-7 if rung else None)
        refs = (
            (ArtifactRef("prompt.md", PROMPT_SHA), ArtifactRef("reply.md", REPLY_SHA))
            if plan.generator == "llm"
            else ()
        )
        if rung == 0:
            outcome = RungOutcome(verdict, 0.0, cost, self._resources(plan), BOUND_US[0], artifacts=refs)
            r = outcome.resources[0]
            why = f"compiles: {r.registers} registers, no spills, occupancy {r.occupancy:.0%} ({r.limiter})"
            return RungCompleted(name, 0, outcome, Decision.PROMOTE, why, None, False)
        return self._timed(number, plan, rung, verdict, cost)

    def _failed(self, name: str, verdict: Verdict, rung: int) -> RungCompleted:
        decision = Decision.REJECT if verdict.kind == "rejected" else Decision.SET_ASIDE
        outcome = RungOutcome(verdict, 0.1 if rung else 0.0, 0.6)
        return RungCompleted(name, rung, outcome, decision, f"{verdict.reason}: {verdict.detail}", None, False)

    def _timed(self, number: int, plan: Plan, rung: int, verdict: Verdict, cost: float) -> RungCompleted:
        rival = self.champion if rung == CONFIRM else self.incumbents.get(rung)
        all_plans = plans()
        rival_us = all_plans[rival - 1].us if rival else plan.us
        vs = self._comparison(candidate_id(rival), rival_us / plan.us, rung) if rival else None
        comparisons = [vs] if vs else []
        comparisons.append(self._comparison("first", PLANS[0].us / plan.us, rung))
        if not self.modelled:
            comparisons.append(self._comparison("eager", EAGER_US[0] / plan.us, rung))
        timings = tuple(
            self._timing(s, plan.us * k)
            for s, k in zip(SHAPES[: 1 if rung == 1 else 3], (1, 0.049, 3.95), strict=False)
        )
        profiled, name = rung == PROFILE, candidate_id(number)
        outcome = RungOutcome(
            verdict, 0.0 if self.modelled else cost * 0.4, cost, (), None,
            Measurement(self.device.clock, timings, tuple(comparisons)),
            self._profile(plan) if profiled else None, self._diagnosis(plan) if profiled else None,
            (ArtifactRef(f"pairs-{name}-r3.json", SAMPLES_SHA),) if profiled and not self.modelled else (),
        )  # fmt: skip
        score = PLANS[0].us / plan.us
        if vs is None:
            decision = Decision.CROWN if rung == CONFIRM else Decision.PROMOTE
            return RungCompleted(
                candidate_id(number), rung, outcome, decision, "first to be timed on this rung", score, True
            )
        faster = vs.outcome is Outcome.FASTER
        close = rung == 1 and vs.ratio > 0.97
        decision = Decision.PROMOTE if faster or close else Decision.PRUNE
        decision = Decision.CROWN if rung == CONFIRM and faster else decision
        why = (
            f"{100 * (vs.ratio - 1):+.1f} % ({100 * (vs.low - 1):.1f} to {100 * (vs.high - 1):.1f}) over {vs.against}, "
            f"{vs.outcome}, {vs.confidence:.1%} sure, {vs.n_pairs} pairs in {vs.n_processes} processes"
        )
        return RungCompleted(candidate_id(number), rung, outcome, decision, why, score, faster)

    def _comparison(self, other: str, ratio: float, rung: int) -> Comparison:
        half = 0.0 if self.modelled else (0.02, 0.02, 0.008, 0.006, 0.004)[rung]
        low, high = ratio - half, ratio + half
        outcome = Outcome.FASTER if low > 1 else Outcome.SLOWER if high < 1 else Outcome.TIE
        shapes = tuple(
            ShapeRatio(s, ratio * k, low * k, high * k) for s, k in zip(SHAPES, (1.0, 0.99, 1.01), strict=True)
        )
        n = 0 if self.modelled else (0, 6, 14, 12, 12)[rung]
        return Comparison(
            other,
            outcome,
            ratio,
            low,
            high,
            1.0 if self.modelled else 0.992,
            n,
            3 if rung > 2 else 1,
            shapes if rung > 1 else (),
        )

    def _timing(self, shape: str, us: float) -> ShapeTiming:
        half = 0.0 if self.modelled else us * 0.004
        return ShapeTiming(shape, us, us - half, us + half, 40, None if self.modelled else us + 11.0)

    def _resources(self, plan: Plan) -> tuple[KernelResources, ...]:
        warps = int(plan.options.get("warps", 8))  # type: ignore[call-overload]
        registers = {"one_row": 64, "rows": 96, "online": 40}[plan.structure]
        occupancy = min(1.0, 65536 // (registers * 32 * warps) * warps / 64)
        return (
            KernelResources(
                "softmax_kernel", SHAPES[0], (4096, 1, 1), warps, 2, registers, 0, 16640, occupancy, "registers"
            ),
        )

    def _profile(self, plan: Plan) -> Profile:
        if self.modelled:
            return Profile(SHAPES[0], not_profiled="a model has no counters; run on cuda:N to profile")
        reached = BOUND_US[0] / plan.us
        peak = "avg.pct_of_peak_sustained"
        metrics = (
            Evidence(f"sm__throughput.{peak}_elapsed", 18.0, "%"),
            Evidence(f"gpu__dram_throughput.{peak}_elapsed", 100 * reached, "%"),
            Evidence(f"lts__throughput.{peak}_elapsed", 44.0, "%"),
            Evidence(f"l1tex__throughput.{peak}_active", 31.0, "%"),
            Evidence("dram__bytes_read.sum", 0.272e9, "byte"),
            Evidence("dram__bytes_write.sum", 0.268e9, "byte"),
            Evidence("lts__t_sector_hit_rate.pct", 50.1, "%"),
            Evidence("launch__registers_per_thread", 64, "register/thread"),
        )
        stalls = (("long_scoreboard", 61.0), ("barrier", 9.0), ("math_pipe_throttle", 4.0), ("selected", 3.0))
        return Profile(SHAPES[0], metrics, stalls, ("softmax_kernel",))

    def _diagnosis(self, plan: Plan) -> Diagnosis:
        reached = BOUND_US[0] / plan.us
        sentence = f"Memory bound: {reached:.0%} of the problem's bound; {1 - reached:.0%} left."
        evidence = (
            Evidence("memory", 100 * reached, "% of peak"),
            Evidence("compute", 18.0, "% of peak"),
            Evidence("bytes moved", 1.02, "x of expected"),
        )
        findings = (Finding(Bottleneck.DRAM, 0.8, evidence),)
        return Diagnosis(sentence, findings, SHAPES[0], plan.us, BOUND_US[0], "model" if self.modelled else "counters")


def h200() -> DeviceSpec:
    return replace(DATA_SHEETS["h200"], key="cuda:0", name="NVIDIA H200", clock=Clock.MEASURED)


def recorded(device: DeviceSpec | None = None, ended: EndReason | None = None) -> Recorder:
    """The whole run: c0040 has passed the screen and is being measured, five wait, c0015 is champion."""
    recorder = Recorder(device or h200(), Budget(wall_s=1800.0))
    all_plans = plans()
    recorder.admit(1, all_plans[0])
    recorder.climb(1, all_plans[0])
    for first in range(2, 41, 6):
        batch = range(first, min(first + 6, 41))
        parent = all_plans[first - 1].parent
        for n in batch:
            recorder.admit(n, all_plans[n - 1])
        asked = ProposalsMade(
            all_plans[first - 1].generator, candidate_id(parent) if parent else None, len(batch), 1, False, 0.4
        )
        recorder.note(asked, 0.4)
        if first < 38:
            for n in batch:
                recorder.climb(n, all_plans[n - 1])
    recorder.climb(38, all_plans[37], to=0)
    recorder.climb(40, all_plans[39], to=1)
    if ended is not None:
        recorder.note(RunEnded(ended, "the budget of 30 minutes is spent"), 900.0)
    return recorder


def recorded_earlier(n_events: int = 75) -> Recorder:
    """Another run of the same problem on the same chip, ended before it found what this one did."""
    recorder = recorded()
    recorder.envelopes = recorder.envelopes[:n_events]
    recorder.wall_s, recorder.gpu_s = recorder.envelopes[-1].wall_s, recorder.envelopes[-1].gpu_s
    recorder.note(RunEnded(EndReason.STOPPED, "as asked"), 1.0)
    return recorder


def samples_json() -> str:
    """A stored log of samples: three processes, two opponents' turns each, as the engine attaches it."""
    rng = random.Random(5)

    def pairs(mine: float, other: float) -> list[dict[str, list[float]]]:
        drift = rng.gauss(0, 0.3)
        return [
            {"candidate": [mine + drift + rng.gauss(0, 0.3)] * 2, "other": [other + drift + rng.gauss(0, 0.4)] * 2}
            for _ in range(16)
        ]

    processes = [{"c0009": {SHAPES[0]: pairs(135.1, 137.9), SHAPES[1]: pairs(6.62, 6.76)}} for _ in range(3)]
    return json.dumps({"candidate": "c0015", "rung": 3, "unit": "us", "processes": processes})


def samples(n_pairs: int = 14) -> list[LiveSample]:
    """What has been sampled of c0040 against c0015 so far."""
    rng = random.Random(3)
    pairs = range(1, n_pairs + 1)
    return [
        LiveSample("c0040", "c0015", SHAPES[0], 129.8 + rng.gauss(0, 0.5), 134.9 + rng.gauss(0, 0.5), i, 20)
        for i in pairs
    ]
