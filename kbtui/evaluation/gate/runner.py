"""Effects: runs one stage's checks of a candidate, in its own child, against the referee in another."""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kbtui.domain.problem import ProblemSpec
from kbtui.domain.verdict import Proof, Reason, Verdict, rejected, verified
from kbtui.evaluation.gate.clients import CandidateClient, Judgement, RefereeClient
from kbtui.evaluation.gate.failures import verdict_of_failure
from kbtui.evaluation.gate.plan import Check, CheckKind, plan
from kbtui.evaluation.gate.told import CheckReport
from kbtui.evaluation.gate.tolerance import Fault, fault_of, largest_error
from kbtui.evaluation.process.failures import WorkerFailure

#: Fewest calls before a late check, and the seconds they may take.
LATE_CALLS = {Proof.GPU: 100, Proof.INTERPRETER: 14}
LATE_AT_MOST_S = 0.3
#: Least and most seconds that a process has run its candidate before it is asked once more, with proof of either kind.
#: Drawn anew each time, by nothing that a candidate could know: no age is safe to begin at.
AGE_S = {Proof.GPU: (2.0, 8.0), Proof.INTERPRETER: (1.5, 3.0)}
_SYSTEM = random.SystemRandom()


@dataclass(slots=True)
class _Progress:
    """What one stage has seen so far. ``aged_at``: when its process is old enough, on time.monotonic."""

    proof: Proof
    aged_at: float
    error: float = 0.0
    n_checks: int = 0
    deterministic: bool | None = None

    def repeated(self, same: bool | None) -> None:
        if same is not None:
            self.deterministic = same and self.deterministic is not False


def run_stage(
    referee: RefereeClient, candidate: CandidateClient, spec: ProblemSpec, stage: int, seed: int, proof: Proof,
    *, aged: bool = True,
) -> Verdict:  # fmt: skip
    """The verdict of one stage on a candidate that is loaded. Raises RefereeError, which is no verdict on it.

    Without ``aged`` the checks that wait for the process to grow old are left for ``run_aged``.
    """
    checks = [c for c in plan(spec, stage, seed, proof) if aged or c.kind is not CheckKind.AGED]
    return _through(checks, referee, candidate, spec, stage, _Progress(proof, time.monotonic() + drawn_age_s(proof)))


def run_aged(
    referee: RefereeClient, candidate: CandidateClient, spec: ProblemSpec, stage: int, seed: int, proof: Proof,
    *, aged_at: float,
) -> Verdict:  # fmt: skip
    """What ``run_stage`` left out, of a candidate that is old enough at ``aged_at`` (time.monotonic, by an age that
    ``drawn_age_s`` gave); verified where that is nothing. Waits where it is not yet. Raises RefereeError."""
    checks = [c for c in plan(spec, stage, seed, proof) if c.kind is CheckKind.AGED]
    return _through(checks, referee, candidate, spec, stage, _Progress(proof, aged_at))


def drawn_age_s(proof: Proof, rng: random.Random = _SYSTEM) -> float:
    """An age within ``AGE_S``, as often between 2 and 4 s as between 4 and 8."""
    low, high = AGE_S[proof]
    return float(low * (high / low) ** rng.random())


def _through(
    checks: Sequence[Check], referee: RefereeClient, candidate: CandidateClient, spec: ProblemSpec, stage: int,
    progress: _Progress,
) -> Verdict:  # fmt: skip
    proof = progress.proof
    for check in checks:
        try:
            fault = _run(check, referee, candidate, spec, progress)
        except WorkerFailure as failure:
            return replace(verdict_of_failure(failure, stage, proof, check.where), error=progress.error or None)
        if fault is not None:
            verdict = rejected(fault.reason, stage, proof, f"{check.where}: {fault.detail}")
            return replace(verdict, error=progress.error or None)
        progress.n_checks += 1
    note = ", not deterministic" if progress.deterministic is False else ""
    verdict = verified(stage, proof, f"{progress.n_checks} checks{note}", progress.error)
    return replace(verdict, deterministic=progress.deterministic)


def _run(
    check: Check, referee: RefereeClient, candidate: CandidateClient, spec: ProblemSpec, progress: _Progress
) -> Fault | None:
    match check.kind:
        case CheckKind.VALUES:
            return _values(check, referee, candidate, spec, progress)
        case CheckKind.REPEAT:
            return _repeat(referee, candidate, spec, progress)
        case CheckKind.NUDGE:
            return _nudge(check, referee, candidate, spec, progress)
        case CheckKind.LATE:
            candidate.repeat(_n_late(check, progress.proof), LATE_AT_MOST_S)
            return _nudge(check, referee, candidate, spec, progress)
        case CheckKind.NO_OP:
            return _no_op(check, referee, candidate, spec)
        case CheckKind.AGED:
            time.sleep(max(0.0, progress.aged_at - time.monotonic()))
            return _values(check, referee, candidate, spec, progress)


def _values(
    check: Check, referee: RefereeClient, candidate: CandidateClient, spec: ProblemSpec, progress: _Progress
) -> Fault | None:
    layout = referee.prepare(check.shape, check.distribution, [check.seed])
    candidate.bind(layout)
    report = candidate.check(0, True, spec.allowed_ops)
    return told_fault(report) or _judged(referee.judge(0), spec, progress) or _launch_fault(report)


def _repeat(referee: RefereeClient, candidate: CandidateClient, spec: ProblemSpec, progress: _Progress) -> Fault | None:
    """The same inputs again: wrong values fail, another right answer is only noted."""
    report = candidate.check(0, False, spec.allowed_ops)
    judgement = referee.judge(0, repeat=True)
    progress.repeated(judgement.same)
    return told_fault(report) or _judged(judgement, spec, progress)


def _nudge(
    check: Check, referee: RefereeClient, candidate: CandidateClient, spec: ProblemSpec, progress: _Progress
) -> Fault | None:
    """The inputs of the check before, partly overwritten where they lie: an answer that was kept is wrong now."""
    referee.nudge(check.seed)
    report = candidate.check(0, False, spec.allowed_ops)
    return told_fault(report) or _judged(referee.judge(0), spec, progress)


def _n_late(check: Check, proof: Proof) -> int:
    """How many calls go by, another number each time, so that nobody can count on it."""
    fewest = LATE_CALLS[proof]
    return fewest + check.seed % fewest


def _no_op(check: Check, referee: RefereeClient, candidate: CandidateClient, spec: ProblemSpec) -> Fault | None:
    """With the candidate's kernels left out the answer must go wrong, or something else computed it."""
    candidate.bind(referee.prepare(check.shape, check.distribution, [check.seed]))
    returned = candidate.no_op(0)
    judgement = referee.judge(0)
    if returned and judged_fault(judgement, spec) is None:
        return Fault(Reason.KERNELS_DO_NOTHING, "the answer is still right when its kernels are left out")
    return None


def told_fault(report: CheckReport) -> Fault | None:
    """What the child itself says is wrong with outputs' kind, torch's flags or the operations used."""
    if report.fault:
        return Fault(*report.fault)
    if report.forbidden:
        return Fault(Reason.FORBIDDEN_OP, f"computes with {', '.join(report.forbidden)}")
    return None


def judged_fault(judgement: Judgement, spec: ProblemSpec) -> Fault | None:
    """What the referee says is wrong with inputs' memory and outputs' values."""
    if judgement.modified:
        return Fault(Reason.INPUT_MODIFIED, f"argument {judgement.modified[0]} was written to")
    faults = (fault_of(errors, spec.tolerance) for errors in judgement.errors)
    return next((f for f in faults if f is not None), None)


def _judged(judgement: Judgement, spec: ProblemSpec, progress: _Progress) -> Fault | None:
    progress.error = max(progress.error, largest_error(judgement.errors) or 0.0)
    return judged_fault(judgement, spec)


def _launch_fault(report: CheckReport) -> Fault | None:
    if report.n_launches == 0:
        return Fault(Reason.KERNELS_DO_NOTHING, "it launched no Triton kernel")
    return None
