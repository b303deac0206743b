"""The champion against everything else in one interleaved measurement. Effects: a device, a workspace.

It is one confirmation of the engine's own: a fresh process a side and process pair, ABBA turns on the device's clock,
cold L2, outputs judged on inputs nobody has seen. The gate comes first, with another seed than the search's.

Baselines that compile are started once before, alone on the GPU where they choose by times of their own; the processes
that are timed find in a cache what that made. While they do the champion's process grows old for the gate's last
question. Nothing is timed by itself: only turns are kept.
"""

import json
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Protocol, runtime_checkable

from benchmarks.lanes import Gating
from benchmarks.six.marks import Marks, Turns
from benchmarks.six.record import CHAMPION, DRAFT, FIRST, Against, Contest, KernelKept, PairsKept, Reading
from kbtui.commands.bench import bench_rung
from kbtui.console import tell
from kbtui.domain.candidate import Attachment
from kbtui.domain.evaluation import Baseline, Evaluated, EvaluationRequest, Opponent
from kbtui.domain.measurement import Comparison, Measurement, ShapeTiming
from kbtui.domain.rung import Rung
from kbtui.domain.verdict import Verdict, VerdictKind
from kbtui.engine.ports import Device
from kbtui.errors import EngineError
from kbtui.evaluation.baselines import NAMES, TUNED
from kbtui.scheduler.state import Tried

#: Candidates that may fail the last gate, one after the other, before the case is given up.
MOST_REFUSED = 5
#: The search's inputs are not used again.
SEED_APART = 7919


@runtime_checkable
class LeavesOut(Protocol):
    """A device that can go on without one of its baselines."""

    def leave_out(self, baseline: str) -> None: ...


@runtime_checkable
class Readies(Protocol):
    """A device that starts baselines without timing them by themselves."""

    def ready(self, names: tuple[str, ...]) -> tuple[Baseline, ...]: ...

    def compile_for_gate(self, source: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Entrant:
    """One kernel of the search with its source."""

    tried: Tried
    source: str

    def kept(self, role: str) -> KernelKept:
        candidate = self.tried.candidate
        operator = f"{candidate.origin.generator}: {candidate.origin.operator}"
        return KernelKept(
            role, candidate.id, candidate.summary, candidate.structure, operator, self.tried.score, self.source,
            self._diagnosis,
        )  # fmt: skip

    @property
    def _diagnosis(self) -> str | None:
        """Of the highest rung that read counters; of the highest that gave one, where none did."""
        given = [r.outcome.diagnosis for _, r in sorted(self.tried.results.items()) if r.outcome.diagnosis]
        told = next((d for d in reversed(given) if d.source == "counters"), given[-1] if given else None)
        return f"{told.sentence} ({told.source})" if told else None


@dataclass(frozen=True, slots=True)
class Contestants:
    """``ranked``: who may be the champion, best first. ``draft``: the best playbook draft without any search."""

    ranked: Sequence[Entrant]
    first: Entrant | None
    draft: Entrant | None


@dataclass(frozen=True, slots=True)
class Terms:
    """How it is measured. ``shape``: the case's, the only one timed; ``command`` is kept with the result.

    ``baselines``: those that a device is to ready which does not time them when it opens a problem.
    """

    shape: str
    seed: int
    n_pairs: int
    n_processes: int
    command: str
    baselines: tuple[str, ...] = ()

    @property
    def rung(self) -> Rung:
        return bench_rung(self.n_pairs, self.n_processes)


def hold(
    device: Device, contestants: Contestants, baselines: Iterable[Baseline], terms: Terms, marks: Marks
) -> tuple[Contest, tuple[KernelKept, ...]]:
    """On a device where the problem is open. Raises EngineError where no candidate passes the gate and is timed.

    ``baselines``: what opening the problem found of them; a device that readies them is asked itself.
    """
    began = time.monotonic()
    refused: list[tuple[str, str]] = []
    made_ready = Preparation(device, terms, marks)
    for champion in contestants.ranked[: MOST_REFUSED + 1]:
        name = champion.tried.candidate.id
        tell(f"gate and times of {name} {champion.tried.candidate.summary}")
        verdict = made_ready.gate(champion, contestants)
        if not verdict.ok:
            refused.append((name, f"{verdict.reason}: {verdict.detail}"))
            continue
        found, broken = _timed(device, _request(champion, contestants, terms), marks)
        if found.outcome.verdict.ok and found.outcome.measurement is not None:
            said = f"{verdict.kind} by {verdict.proof}: {verdict.detail}"
            others, wall_s = (*broken, *made_ready.baselines, *baselines), time.monotonic() - began
            contest = _contest(name, said, found, others, tuple(refused), terms, wall_s)
            return contest, _kept(champion, contestants)
        refused.append((name, f"{found.outcome.verdict.reason}: {found.outcome.verdict.detail}"))
        if found.outcome.verdict.kind is VerdictKind.UNVERIFIED:
            break  # the machine's fault or ours: the next candidate would fare no better
    told = "; ".join(f"{name} {why}" for name, why in refused) or "there is none"
    raise EngineError(f"no candidate could be measured: {told[:400]}", "read the search's log")


@dataclass(slots=True)
class Preparation:
    """What comes before the turns: the gate of whoever may be the champion, and, once, the baselines."""

    device: Device
    terms: Terms
    marks: Marks
    baselines: list[Baseline] = field(default_factory=list)
    _verdicts: dict[str, Verdict] = field(default_factory=dict)

    def gate(self, champion: Entrant, contestants: Contestants) -> Verdict:
        tuned = tuple(name for name in self.terms.baselines if name in TUNED)
        self._compile_ahead(champion, contestants.draft, contestants.first)
        self._ready(tuple(name for name in self.terms.baselines if name not in tuned), "baselines")
        gating = Gating(self._told, self.terms.seed + SEED_APART, alone=False)
        gating.put(self.device, champion, champion.source)
        self.marks.reached("gate")
        if champion.tried.candidate.id not in self._verdicts:
            for name in tuned:
                self._ready((name,), name)
        gating.finish(self.device)
        self.marks.reached("gate's last question")
        return self._verdicts[champion.tried.candidate.id]

    def _compile_ahead(self, *entrants: Entrant | None) -> None:
        if isinstance(self.device, Readies):
            for source in dict.fromkeys(e.source for e in entrants if e):
                self.device.compile_for_gate(source)

    def _ready(self, names: tuple[str, ...], phase: str) -> None:
        known = {b.name for b in self.baselines}
        missing = tuple(name for name in names if name not in known)
        if missing and isinstance(self.device, Readies):
            self.baselines += self.device.ready(missing)
            self.marks.reached(f"ready {phase}")

    def _told(self, device: Device, champion: Entrant, verdict: Verdict, age_s: float | None) -> None:
        self._verdicts[champion.tried.candidate.id] = verdict


def _timed(device: Device, request: EvaluationRequest, marks: Marks) -> tuple[Evaluated, tuple[Baseline, ...]]:
    """All turns; a baseline that breaks in the middle is left out, and all turns are taken again."""
    broken: list[Baseline] = []
    while True:
        turns = Turns(marks)
        found = device.evaluate(request, turns)
        turns.over()
        name = culprit(found.outcome.verdict)
        if name is None or not isinstance(device, LeavesOut) or name in {b.name for b in broken}:
            return found, tuple(broken)
        tell(f"left out: {found.outcome.verdict.detail}")
        broken.append(Baseline(name, None, found.outcome.verdict.detail))
        device.leave_out(name)


def culprit(verdict: Verdict) -> str | None:
    """The baseline for which a measurement came to nothing, as its failure names it."""
    name = verdict.detail.partition(":")[0]
    return name if verdict.kind is VerdictKind.UNVERIFIED and name in NAMES else None


def _request(champion: Entrant, contestants: Contestants, terms: Terms) -> EvaluationRequest:
    def opponent(name: str, other: Entrant | None) -> Opponent | None:
        same = other is None or other.source == champion.source
        return None if same or other is None else Opponent(name, other.source)

    draft, first = opponent(DRAFT, contestants.draft), opponent(FIRST, contestants.first)
    name, rung = champion.tried.candidate.id, terms.rung
    return EvaluationRequest(name, champion.source, rung, terms.seed, rung.gate_stage, draft, first)


def _kept(champion: Entrant, contestants: Contestants) -> tuple[KernelKept, ...]:
    named = ((CHAMPION, champion), (FIRST, contestants.first), (DRAFT, contestants.draft))
    return tuple(entrant.kept(role) for role, entrant in named if entrant is not None)


def _contest(
    champion: str,
    verdict: str,
    found: Evaluated,
    baselines: Iterable[Baseline],
    refused: tuple[tuple[str, str], ...],
    terms: Terms,
    wall_s: float,
) -> Contest:
    measurement = found.outcome.measurement
    assert measurement is not None
    raw, timing = _raw(found.attachments), _timing(measurement, terms.shape)
    met = {c.against: against(c, raw, timing) for c in measurement.comparisons}
    missing = {b.name: Against(b.name, error=why_not(b)) for b in reversed(tuple(baselines)) if b.name not in met}
    return Contest(
        date=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        command=terms.command,
        seed=terms.seed,
        champion=champion,
        verdict=verdict,
        us=timing.device_us,
        low_us=timing.low_us,
        high_us=timing.high_us,
        n_samples=timing.n_samples,
        end_to_end_us=timing.end_to_end_us,
        against=(*met.values(), *reversed(missing.values())),
        refused=refused,
        unstable=measurement.unstable,
        readings=readings(raw.get("sensors", ())),
        pairs=pairs(raw.get("processes", ()), terms.shape),
        wall_s=wall_s,
    )


def why_not(baseline: Baseline) -> str:
    """Why a baseline was not timed: its error without its own name and the exception's."""
    told = (baseline.error or "not timed beside the champion").removeprefix(f"{baseline.name}: ")
    return re.sub(r"^(Import|Lookup|Arithmetic)Error: ", "", told)


def _timing(measurement: Measurement, shape: str) -> ShapeTiming:
    """Of the case's shape: a replay's problem times others too."""
    return next((t for t in measurement.timings if t.shape == shape), measurement.timings[0])


def against(comparison: Comparison, raw: dict[str, Any], champion: ShapeTiming) -> Against:
    """One comparison on the case's shape; the other's own time is its samples' median, where samples were kept."""
    own = next((s for s in comparison.shapes if s.shape == champion.shape), None)
    ratio, low, high = (own.ratio, own.low, own.high) if own else (comparison.ratio, comparison.low, comparison.high)
    samples = [
        sample
        for process in raw.get("processes", ())
        for pair in process.get(comparison.against, {}).get(champion.shape, ())
        for sample in pair["other"]
    ]
    return Against(
        comparison.against,
        us=median(samples) if samples else ratio * champion.device_us,
        ratio=ratio,
        low=low,
        high=high,
        outcome=comparison.outcome.value,
        n_pairs=comparison.n_pairs,
        n_processes=comparison.n_processes,
    )


def pairs(processes: Iterable[dict[str, Any]], shape: str) -> tuple[PairsKept, ...]:
    """What a stranger can check the ratios with: each pair's two medians, to a nanosecond."""
    return tuple(
        PairsKept(
            name,
            index,
            tuple((round(median(p["candidate"]), 3), round(median(p["other"]), 3)) for p in by_shape.get(shape, ())),
        )
        for index, process in enumerate(processes)
        for name, by_shape in process.items()
    )


def readings(sensors: Iterable[dict[str, float]]) -> tuple[Reading, ...]:
    """Clocks in MHz, power in W, temperature in C: least, median and largest over the contest."""
    by_name: dict[str, list[float]] = {}
    for sensor in sensors:
        for name, value in sensor.items():
            by_name.setdefault(name, []).append(float(value))
    return tuple(Reading(name, min(v), float(median(v)), max(v)) for name, v in by_name.items())


def _raw(attachments: Iterable[Attachment]) -> dict[str, Any]:
    found = next((a for a in attachments if a.name.startswith("samples-")), None)
    raw: dict[str, Any] = json.loads(found.content) if found else {}
    return raw
