"""A device that plays a recorded pool back: ``replay:POOL``. Effects: reads the pool's file; an optional pause.

Verdicts, resources, times, profiles and costs are the recorded ones. Comparisons are drawn anew between any two
recorded candidates (see ``replay_draws``). A rung that was never recorded for a candidate is derived from its highest
recorded one, at the median cost of that rung over the pool. Time is simulated: it passes by what was recorded. In a
pool where only some confirmations met all that a run's meets, the others cost as much more as those did (medians), and
so do derived ones.
"""

import hashlib
import os
import random
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

from kbtui.domain.candidate import source_sha
from kbtui.domain.evaluation import Evaluated, EvaluationRequest, Opponent, ProblemReport, RungOutcome, first_share
from kbtui.domain.measurement import Comparison, LiveSample, Measurement
from kbtui.domain.pool import Pool, PoolCandidate, RecordedRung
from kbtui.domain.problem import Problem
from kbtui.domain.rung import COMPILE, CONFIRM, DEFAULT_LADDER, SCREEN, Rung
from kbtui.domain.verdict import Proof, Reason, Verdict, unverified, verified
from kbtui.engine.ports import SampleSink
from kbtui.errors import UsageError
from kbtui.evaluation.devices import REPLAY
from kbtui.evaluation.devices.replay_draws import Match, Times, baseline_times, times_of
from kbtui.evaluation.measure.further import n_further
from kbtui.evaluation.simulated_time import SimulatedTime
from kbtui.pool_file import read_pool

#: Real milliseconds that every evaluation waits, so that a person can watch, and a test can kill in the middle.
PAUSE_VARIABLE = "KBTUI_REPLAY_PAUSE_MS"


class ReplayDevice:
    """Evaluates what the pool holds; anything else is unverified, ``not_recorded``, at no cost."""

    def __init__(self, path: Path) -> None:
        """Raises UsageError where the file is not a pool, or the pause is no number."""
        self.pool = read_pool(path)
        self.time = SimulatedTime()
        recorded = self.pool.header.device
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:8]
        name = f"replay of {recorded.name}, pool {digest}"
        self.spec = replace(recorded, key=f"{REPLAY}{path.absolute()}", name=name, uuid=None)
        self._surcharge = confirm_surcharge(self.pool)
        self._costs = median_costs(self.pool, self._surcharge)
        self._pause_s = _pause_s()

    def problem(self, asked: Problem) -> Problem:
        """The pool's own copy of the problem asked for, which may have changed since. Raises UsageError on another."""
        own = self.pool.header.problem
        if asked.spec.name != own.spec.name:
            raise UsageError(f"this pool is of {own.spec.name}, not of {asked.spec.name}", "name the pool's problem")
        return replace(own, path=asked.path)

    def open(self, problem: Problem) -> ProblemReport:
        """Raises UsageError where the problem's first kernel was not recorded."""
        first = problem.kernel_source
        if first is not None and source_sha(first) not in self.pool.by_sha:
            raise UsageError("the first kernel is not in the pool", "leave --kernel out: a replay knows only its own")
        self.time.owe(self.pool.header.open_wall_s)
        return self.pool.header.report

    def prefetch(self, source: str) -> None: ...

    def close(self) -> None: ...

    def evaluate(self, request: EvaluationRequest, on_sample: SampleSink) -> Evaluated:
        if self._pause_s:
            time.sleep(self._pause_s)
        candidate = self.pool.by_sha.get(source_sha(request.source))
        if candidate is None:
            return Evaluated(RungOutcome(_not_recorded(request.rung, "this source is not in the pool"), 0.0, 0.0))
        outcome = self._measured(self._base(candidate, request.rung), candidate, request, on_sample)
        self.time.owe(outcome.wall_s)
        return Evaluated(outcome)

    def _base(self, candidate: PoolCandidate, rung: Rung) -> RungOutcome:
        """The recorded outcome, or the one derived; its artifacts stayed where it was recorded."""
        recorded = candidate.at(rung.index)
        if recorded is not None:
            return paid(replace(recorded.outcome, artifacts=()), rung.index, self.pool, self._surcharge)
        return self._derived(candidate.highest, candidate, rung)

    def _derived(self, highest: RecordedRung, candidate: PoolCandidate, rung: Rung) -> RungOutcome:
        gpu_s, wall_s = self._costs.get(rung.index) or max(self._costs.values())
        return replace(
            highest.outcome,
            verdict=_derived_verdict(highest, rung, bool(times_of(candidate, rung.index))),
            gpu_s=gpu_s,
            wall_s=wall_s,
            measurement=None,
            profile=highest.outcome.profile if rung.profile else None,
            artifacts=(),
        )

    def _measured(
        self, base: RungOutcome, candidate: PoolCandidate, request: EvaluationRequest, on_sample: SampleSink
    ) -> RungOutcome:
        rung = request.rung
        if not base.verdict.ok or rung.index == COMPILE or rung.max_pairs == 0:
            return base
        mine = times_of(candidate, rung.index)
        shapes = self._shapes(rung)
        timings = tuple(mine[s].timing for s in shapes if s in mine)
        found, n_more = self._comparisons(candidate, mine, request, on_sample)
        unstable = base.measurement.unstable if base.measurement else None
        played = replace(base, measurement=Measurement(self.spec.clock, timings, found, unstable))
        return as_dear(played, 1 + n_more / max(rung.process_pairs, 1))

    def _shapes(self, rung: Rung) -> tuple[str, ...]:
        return tuple(s.name for s in self.pool.header.problem.spec.timed_at(max(rung.index, SCREEN)))

    def _comparisons(
        self, candidate: PoolCandidate, mine: Times, request: EvaluationRequest, on_sample: SampleSink
    ) -> tuple[tuple[Comparison, ...], int]:
        """And how many process pairs were played beyond the rung's first ones."""
        matches, rung = self._matches(candidate, mine, request, on_sample), request.rung
        for match in matches:
            match.play(max(rung.process_pairs, 1))
        deciding = [m for m in matches if m.against in request.to_beat]
        n_more = n_further(rung, [m.comparison() for m in deciding])
        for match in deciding:
            match.play(n_more)
        return request.with_first([match.comparison() for match in matches]), n_more

    def _matches(
        self, candidate: PoolCandidate, mine: Times, request: EvaluationRequest, on_sample: SampleSink
    ) -> list[Match]:
        """With every opponent that was ever timed on a shape that the candidate was, too."""
        found = []
        for name, key, other in self._opponents(request):
            rng = random.Random(f"{request.seed}/{candidate.source_sha}/{key}/{request.rung.index}")

            def on_pair(shape: str, own_us: float, other_us: float, pair: int, against: str = name) -> None:
                sample = LiveSample(request.candidate, against, shape, own_us, other_us, pair, request.rung.max_pairs)
                on_sample(sample)

            shapes = tuple(s for s in self._shapes(request.rung) if s in mine and s in other)
            found += [Match(name, mine, other, shapes, request.rung, rng, on_pair)] if shapes else []
        return found

    def _opponents(self, request: EvaluationRequest) -> list[tuple[str, str, Times]]:
        """(name, key of the draw, times) of everyone a measurement on this rung would meet."""
        rung = request.rung
        found = [(name, source_sha(o.source), self._times(o, rung)) for name, o in request.to_beat.items()]
        if rung.index == CONFIRM:
            baselines = [b for b in self.pool.header.report.baselines if b.measurement]
            found += [(b.name, b.name, baseline_times(b.measurement.timings)) for b in baselines if b.measurement]
        return found

    def _times(self, opponent: Opponent, rung: Rung) -> Times:
        held = self.pool.by_sha.get(source_sha(opponent.source))
        return times_of(held, rung.index) if held else {}


def _not_further(outcome: RungOutcome, rung: int) -> RungOutcome:
    return as_dear(outcome, first_share(outcome, DEFAULT_LADDER[rung].process_pairs))


def as_dear(outcome: RungOutcome, times: float) -> RungOutcome:
    return replace(outcome, gpu_s=outcome.gpu_s * times, wall_s=outcome.wall_s * times)


def median_costs(pool: Pool, surcharge: tuple[float, float]) -> dict[int, tuple[float, float]]:
    """Median (GPU seconds, wall seconds) of each rung that was recorded; the two are of different candidates.

    Confirmations count at what a run would have paid, see ``paid``.
    """
    outcomes: dict[int, list[RungOutcome]] = {}
    for candidate in pool.candidates:
        for recorded in candidate.rungs:
            outcomes.setdefault(recorded.rung, []).append(paid(recorded.outcome, recorded.rung, pool, surcharge))
    return {rung: (median(o.gpu_s for o in of), median(o.wall_s for o in of)) for rung, of in outcomes.items()}


def paid(outcome: RungOutcome, rung: int, pool: Pool, surcharge: tuple[float, float]) -> RungOutcome:
    """A recorded outcome at what a run would have paid for it: a confirmation that met no baseline costs more there.

    ``surcharge``: GPU seconds and wall seconds, as ``confirm_surcharge`` gives them. Where further process pairs were
    played, that was for the opponent met there: without them.
    """
    outcome = _not_further(outcome, rung)
    if rung != CONFIRM or outcome.measurement is None or _met_a_baseline(outcome, pool):
        return outcome
    gpu_s, wall_s = surcharge
    return replace(outcome, gpu_s=outcome.gpu_s + gpu_s, wall_s=outcome.wall_s + wall_s)


def confirm_surcharge(pool: Pool) -> tuple[float, float]:
    """(GPU seconds, wall seconds) by which confirmations that met PyTorch too cost more; 0 where all or none did."""
    recorded = [c.at(CONFIRM) for c in pool.candidates]
    timed = [_not_further(r.outcome, CONFIRM) for r in recorded if r is not None and r.outcome.measurement is not None]
    met = [o for o in timed if _met_a_baseline(o, pool)]
    alone = [o for o in timed if not _met_a_baseline(o, pool)]
    if not met or not alone:
        return 0.0, 0.0
    more_gpu_s = median(o.gpu_s for o in met) - median(o.gpu_s for o in alone)
    more_wall_s = median(o.wall_s for o in met) - median(o.wall_s for o in alone)
    return max(0.0, more_gpu_s), max(0.0, more_wall_s)


def _met_a_baseline(outcome: RungOutcome, pool: Pool) -> bool:
    names = {b.name for b in pool.header.report.baselines}
    return outcome.measurement is not None and any(c.against in names for c in outcome.measurement.comparisons)


def _derived_verdict(highest: RecordedRung, rung: Rung, timed: bool) -> Verdict:
    verdict = highest.outcome.verdict
    if not verdict.ok:
        return verdict
    if rung.index > COMPILE and not timed:
        return _not_recorded(rung, "this candidate was never timed")
    detail = f"rung {rung.index} was not recorded; as on rung {highest.rung}"
    return verified(rung.gate_stage, verdict.proof if rung.index > COMPILE else Proof.NONE, detail, verdict.error)


def _not_recorded(rung: Rung, told: str) -> Verdict:
    return unverified(Reason.NOT_RECORDED, rung.gate_stage, Proof.NONE, told)


def _pause_s() -> float:
    told = os.environ.get(PAUSE_VARIABLE, "0")
    try:
        return max(0.0, float(told)) / 1000
    except ValueError:
        raise UsageError(f"{PAUSE_VARIABLE} is {told!r}", "give milliseconds, e.g. 20") from None
