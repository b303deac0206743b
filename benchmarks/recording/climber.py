"""Takes one candidate up the whole ladder, at full fidelity, unless it is found wrong. Effects: the device."""

import json
from dataclasses import dataclass, replace

from benchmarks.recording.recording import Recording
from benchmarks.recording.speeds import speed_at, speed_of
from kbtui.domain.candidate import Origin, Proposal, source_sha
from kbtui.domain.evaluation import Evaluated, EvaluationRequest, Opponent
from kbtui.domain.measurement import LiveSample
from kbtui.domain.pool import PoolCandidate, RecordedRung, ShapeSamples
from kbtui.domain.problem import Problem
from kbtui.domain.rung import COMPILE, CONFIRM, DEFAULT_LADDER, MEASURE, PROFILE, SCREEN, Rung
from kbtui.engine.ports import Device
from kbtui.pool_file import samples_by_process

PROFILE_ONE_IN = 20
#: The fifth of so many is confirmed as a run confirms: against the best so far and PyTorch, beside the first kernel.
MEETS_ALL_ONE_IN, MEETS_ALL = 16, 4
#: Clearly behind: slower by this factor than the fastest of the pool on the measure rung. Then so few pairs a process
#: do. A run might take more: evaluating everything at full fidelity costs at least what is recorded.
CLEARLY_BEHIND, FEWEST_PAIRS = 1.1, 4
#: A kept sample is rounded to so many decimals of a microsecond: a nanosecond is below any noise here.
SAMPLE_DECIMALS = 3
#: The gate's questions, as a run's seed fixes them.
SEED = 0


def name_of(place: int) -> str:
    """As a run names its candidates."""
    return f"c{place + 1:04d}"


@dataclass(frozen=True, slots=True)
class Climb:
    """One candidate's way up: its place in the recording, from 0 on, and the SHA-256 of the parent's source."""

    place: int
    parent: str | None
    proposal: Proposal

    @property
    def name(self) -> str:
        return name_of(self.place)

    @property
    def profiled(self) -> bool:
        return self.place % PROFILE_ONE_IN == 0


@dataclass(frozen=True, slots=True)
class Climber:
    """``beside_others``: several climb at a time, in threads of their own."""

    device: Device
    problem: Problem
    recording: Recording
    beside_others: bool = False

    def climbed(self, climb: Climb) -> PoolCandidate:
        proposal, rungs, passed = climb.proposal, list[RecordedRung](), -1
        for index in (COMPILE, SCREEN, MEASURE, *((PROFILE,) if climb.profiled else ()), CONFIRM):
            request = self._request(climb, index, passed)
            if index == CONFIRM:
                request = self._meeting(climb, replace(request, rung=self._confirming(rungs, proposal.origin)))
            evaluated = self.device.evaluate(request, _unwatched)
            rungs.append(_recorded(index, evaluated, self.beside_others))
            if not evaluated.outcome.verdict.ok:
                break
            passed = max(passed, evaluated.outcome.verdict.stage)
        return PoolCandidate(
            source_sha(proposal.source), proposal.source, climb.parent, proposal.origin, proposal.structure,
            proposal.summary, proposal.notes, tuple(rungs),
        )  # fmt: skip

    def _request(self, climb: Climb, rung: int, passed: int) -> EvaluationRequest:
        """The first kernel meets itself: its times then come in pairs and by process, as everybody's do."""
        first = self.problem.kernel_source
        opponent = Opponent("first", first) if first else None
        source, on = climb.proposal.source, DEFAULT_LADDER[rung]
        return EvaluationRequest(climb.name, source, on, SEED, passed, None, opponent)

    def _confirming(self, rungs: list[RecordedRung], origin: Origin) -> Rung:
        others = (speed_at(c.at(MEASURE), c.origin) for c in tuple(self.recording.candidates))
        measured = next((speed_at(r, origin) for r in rungs if r.rung == MEASURE), None)
        return confirming_rung(measured, max((s for s in others if s), default=0.0))

    def _meeting(self, climb: Climb, request: EvaluationRequest) -> EvaluationRequest:
        """Against the first kernel alone, or against all that a run's confirmation meets."""
        if climb.place % MEETS_ALL_ONE_IN != MEETS_ALL:
            return replace(request, baselines=())
        done = tuple(self.recording.candidates)
        best = max(((s, n) for n, c in enumerate(done) if (s := speed_of(c))), default=None)
        if best is None:
            return request
        return replace(request, incumbent=Opponent(name_of(best[1]), done[best[1]].source))


def confirming_rung(measured: float | None, fastest: float) -> Rung:
    """With the fewest pairs for who is clearly behind: where it stands is plain. Both are speeds over the first."""
    behind = measured is not None and measured * CLEARLY_BEHIND < fastest
    full = replace(DEFAULT_LADDER[CONFIRM], more_process_pairs=0)
    return replace(full, max_pairs=FEWEST_PAIRS) if behind else full


def _recorded(rung: int, evaluated: Evaluated, beside_others: bool) -> RecordedRung:
    """Who was evaluated beside others has waited for them: what it takes by itself is what it held the GPU for."""
    samples = next((a.content for a in evaluated.attachments if a.name.startswith("samples-")), None)
    by_process = samples_by_process(json.loads(samples)) if samples else ()
    outcome = replace(evaluated.outcome, artifacts=())
    if beside_others and rung > COMPILE:
        outcome = replace(outcome, wall_s=outcome.gpu_s)
    return RecordedRung(rung, outcome, tuple(map(_rounded, by_process)))


def _rounded(samples: ShapeSamples) -> ShapeSamples:
    rounded = tuple(tuple(round(us, SAMPLE_DECIMALS) for us in process) for process in samples.processes)
    return ShapeSamples(samples.shape, rounded)


def _unwatched(sample: LiveSample) -> None: ...
