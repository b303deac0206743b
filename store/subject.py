"""The subject line of an event's commit: what happened, in the words of the screens."""

from collections.abc import Mapping

from kbtui.budget import format_duration
from kbtui.domain.event import (
    Budget,
    CandidateAdmitted,
    CommandAccepted,
    CommandKind,
    Decision,
    Event,
    ProblemOpened,
    ProposalsMade,
    RunEnded,
    RungCompleted,
    RunResumed,
    RunStarted,
)
from kbtui.domain.measurement import Clock, Comparison, Measurement
from kbtui.domain.wording import counted

_WORDS = {
    Decision.PROMOTE: "promoted",
    Decision.PRUNE: "pruned",
    Decision.REJECT: "rejected",
    Decision.SET_ASIDE: "set aside",
    Decision.CROWN: "champion",
}


def subject(event: Event, summaries: Mapping[str, str], first: str | None = None) -> str:
    """One line for an event. ``summaries`` are the admitted candidates' by id, ``first`` the run's first candidate."""
    match event:
        case RunStarted():
            generators = " + ".join(event.generators)
            unvetted = ", unvetted" if event.unvetted else ""
            return f"start {event.problem} on {event.device.name}: {generators}, {budget_text(event.budget)}{unvetted}"
        case ProblemOpened():
            return _opened(event)
        case CandidateAdmitted(candidate=candidate):
            made_from = f" from {' and '.join(candidate.parents)}" if candidate.parents else ""
            by = f"{candidate.origin.generator} {candidate.origin.operator}".strip()
            return f"new {candidate.id} {candidate.summary}{made_from} ({by})"
        case ProposalsMade():
            return _proposed(event)
        case RungCompleted():
            name = f"{event.candidate} {summaries.get(event.candidate, '')}".strip()
            return f"r{event.rung} {name}: {_result(event, first)}"
        case CommandAccepted():
            return _command(event)
        case RunEnded():
            return _with_detail(f"end: {event.reason}", event.detail)
        case RunResumed():
            return _with_detail(f"resume with {budget_text(event.budget)}", event.detail)


def budget_text(budget: Budget) -> str:
    """``budget 10m, 200 candidates, 60s of GPU``, or ``no limit``."""
    parts = [format_duration(budget.wall_s)] if budget.wall_s is not None else []
    parts += [counted(budget.candidates, "candidate")] if budget.candidates is not None else []
    parts += [f"{format_duration(budget.gpu_s)} of GPU"] if budget.gpu_s is not None else []
    return f"budget {', '.join(parts)}" if parts else "no limit"


def _opened(event: ProblemOpened) -> str:
    times = [f"PyTorch {b.name} {_time(b.measurement)}" for b in event.report.baselines if b.measurement]
    return ", ".join([f"problem opened: {event.report.family or 'no known family'}", *times])


def _proposed(event: ProposalsMade) -> str:
    parent = f" from {event.parent}" if event.parent else ""
    twice = f", {event.n_duplicate} known already" if event.n_duplicate else ""
    end = ", has no more" if event.exhausted else ""
    return _with_detail(f"{event.generator} proposed {event.n_admitted} new{parent}{twice}{end}", event.note)


def _result(event: RungCompleted, first: str | None) -> str:
    word = _WORDS[event.decision]
    verdict = event.outcome.verdict
    decided = event.reason if event.reason.lower().startswith(word) else f"{word}: {event.reason}"
    if event.score is not None:
        once = decided.replace(f" ({Clock.MODELLED})", "")  # beside the score it is not lost where a line is cut
        return f"{_score(event, first)}, {once}"
    return decided if verdict.ok or str(verdict.reason) in decided else f"{decided} ({verdict.reason})"


def _score(event: RungCompleted, first: str | None) -> str:
    measured = event.outcome.measurement
    interval = _interval(measured.against("first") or measured.against(first or "")) if measured else ""
    modelled = f" {Clock.MODELLED}" if measured and measured.clock is Clock.MODELLED else ""
    return f"{event.score:.2f}×{interval}{modelled}"


def _interval(comparison: Comparison | None) -> str:
    if comparison is None or comparison.low == comparison.high:
        return ""
    return f" ({comparison.low:.2f}–{comparison.high:.2f})"


def _command(event: CommandAccepted) -> str:
    argument = "a kernel" if event.kind is CommandKind.SUBMIT else event.argument
    return _with_detail(f"command {event.kind} {argument}".rstrip(), event.note)


def _with_detail(text: str, detail: str) -> str:
    return f"{text}; {detail}" if detail else text


def _time(measurement: Measurement) -> str:
    return " / ".join(f"{timing.device_us:.1f} µs" for timing in measurement.timings)
