"""Promote or prune: what becomes of a candidate after a rung, and why, in numbers."""

from dataclasses import dataclass, replace

from kbtui.domain.evaluation import RungOutcome
from kbtui.domain.event import Basis, Decision
from kbtui.domain.measurement import Comparison, Measurement, Outcome
from kbtui.domain.rung import COMPILE, CONFIRM, MEASURE, PROFILE, SCREEN
from kbtui.domain.verdict import VerdictKind
from kbtui.scheduler.basis import basis_of
from kbtui.scheduler.policy import DEFAULT_POLICY, Policy
from kbtui.scheduler.reasons import comparison_words, resources_words
from kbtui.scheduler.state import RunState
from kbtui.scheduler.structures import is_best_of_structure, n_timed, of_structure


@dataclass(frozen=True, slots=True)
class Judgement:
    decision: Decision
    reason: str
    score: float | None = None
    new_incumbent: bool = False
    basis: Basis | None = None


def judge(
    state: RunState, candidate: str, rung: int, outcome: RungOutcome, policy: Policy = DEFAULT_POLICY
) -> Judgement:
    """The decision on one outcome. Pure: the same state and outcome always give the same judgement."""
    found = _judged(state, candidate, rung, outcome, policy)
    met = _against_incumbent(state, rung, outcome) if outcome.measurement else None
    return replace(found, basis=basis_of(state, candidate, rung, outcome, found.decision, found.score, met))


def _judged(state: RunState, candidate: str, rung: int, outcome: RungOutcome, policy: Policy) -> Judgement:
    verdict = outcome.verdict
    if verdict.kind is VerdictKind.REJECTED:
        return Judgement(Decision.REJECT, f"{verdict.reason}: {verdict.detail}")
    if verdict.kind is VerdictKind.UNVERIFIED:
        return Judgement(Decision.SET_ASIDE, f"{verdict.reason}: {verdict.detail}")
    if rung == COMPILE:
        return Judgement(Decision.PROMOTE, resources_words(outcome))
    if outcome.measurement is None:
        return Judgement(Decision.SET_ASIDE, "verified, but nothing was timed")
    comparison = _against_incumbent(state, rung, outcome)
    score = chained_score(state, rung, outcome)
    if comparison is None:
        return _first_timed(state, candidate, rung, score)
    numbers = comparison_words(comparison, outcome.measurement.clock)
    if outcome.measurement.unstable:
        return Judgement(Decision.PRUNE, f"unstable: {outcome.measurement.unstable}; {numbers}", score)
    if rung == CONFIRM:
        return _confirm(state, candidate, comparison, outcome.measurement, score)
    if candidate == state.first and rung < PROFILE:
        return Judgement(Decision.PROMOTE, f"the first kernel is timed on every rung; {numbers}", score)
    if comparison.outcome is Outcome.FASTER:
        return Judgement(Decision.PROMOTE, numbers, score, new_incumbent=True)
    slack = _slack(state, candidate, rung, comparison, score, policy)
    if slack is not None:
        return Judgement(Decision.PROMOTE, f"{numbers}; {slack}", score)
    return Judgement(Decision.PRUNE, numbers, score)


def _first_timed(state: RunState, candidate: str, rung: int, score: float) -> Judgement:
    """Nobody to compare with yet. The first kernel is the baseline of every rung but is never a champion itself."""
    if candidate == state.first and rung >= PROFILE:
        return Judgement(Decision.PRUNE, "the baseline of the run: timed and diagnosed", score, new_incumbent=True)
    decision = Decision.CROWN if rung == CONFIRM else Decision.PROMOTE
    return Judgement(decision, "first to be timed on this rung", score, new_incumbent=True)


def _slack(
    state: RunState, candidate: str, rung: int, comparison: Comparison, score: float, policy: Policy
) -> str | None:
    """Why a candidate that is not faster goes on all the same, or None."""
    structure = state.tried[candidate].candidate.structure
    leads = is_best_of_structure(state, candidate, rung, score)
    if rung == SCREEN:
        young = leads and n_timed(state, structure) < policy.refinements
        least = policy.structure_slack if young else policy.screen_slack
        if comparison.outcome is not Outcome.SLOWER or comparison.high >= least:
            return f"best of {structure}, may trail to {least:.2f}×" if young else f"may still reach {least:.2f}×"
        return _by_its_kind(state, structure, comparison, score, policy)
    if rung == MEASURE and comparison.outcome is Outcome.UNCLEAR and comparison.ratio >= policy.unsure_lead:
        return "ahead, though not surely: only fresh processes could tell"
    unprofiled = not any(PROFILE in t.results for t in of_structure(state, structure))
    if rung == MEASURE and leads and unprofiled and comparison.ratio >= policy.measure_slack:
        return f"best of {structure}, profiled when it is refined"
    return None


def _by_its_kind(state: RunState, structure: str, comparison: Comparison, score: float, policy: Policy) -> str | None:
    """Why one that trails at the screen might lead on all shapes, or None: by what its structure gained from there on.

    The screen times one shape, on which another structure may be far ahead. How two of the same structure compare
    there tells more of how they compare on all shapes than how structures do.
    """
    held = state.tried.get(state.incumbents.get(MEASURE, ""))
    best = held.results[MEASURE].score if held else None
    known = _measured_like_it(state, structure)
    if not best or known is None:
        return None
    at_screen, measured = known
    reach = score * comparison.high / comparison.ratio * measured / at_screen
    if reach < policy.screen_slack * best:
        return None
    kept = f"{structure} keeps {measured / at_screen:.2f} of its speed here on all shapes"
    return f"{kept}: may reach {reach / best:.2f}×"


def _measured_like_it(state: RunState, structure: str) -> tuple[float, float] | None:
    """Scores at the screen and on the measure rung of the best there of a structure that has both; else None."""
    both = [(t.results[SCREEN].score, t.results[MEASURE].score) for t in of_structure(state, structure)
            if SCREEN in t.results and MEASURE in t.results]  # fmt: skip
    scored = [(at_screen, measured) for at_screen, measured in both if at_screen and measured]
    return max(scored, key=lambda of: of[1], default=None)


def _confirm(
    state: RunState, candidate: str, comparison: Comparison, measurement: Measurement, score: float
) -> Judgement:
    numbers = comparison_words(comparison, measurement.clock)
    first = measurement.against("first")
    if first is not None and candidate != state.first and first.outcome is not Outcome.FASTER:
        return Judgement(
            Decision.PRUNE, f"not faster than the first kernel: {comparison_words(first, measurement.clock)}", score
        )
    if comparison.against == candidate or comparison.outcome is Outcome.FASTER or state.champion is None:
        return Judgement(Decision.CROWN, numbers, score, new_incumbent=True)
    return Judgement(Decision.PRUNE, f"not faster than the champion: {numbers}", score)


def chained_score(state: RunState, rung: int, outcome: RungOutcome) -> float:
    """The speed in S(p, r), over the first kernel: compared directly where that was done, else by the incumbent."""
    assert outcome.measurement is not None
    direct = outcome.measurement.against("first")
    if direct is not None:
        return direct.ratio
    comparison = _against_incumbent(state, rung, outcome)
    if comparison is None:
        return 1.0
    held = state.tried.get(comparison.against)
    base = held.results[rung].score if held and rung in held.results else held.score if held else None
    return comparison.ratio * (base or 1.0)


def _against_incumbent(state: RunState, rung: int, outcome: RungOutcome) -> Comparison | None:
    assert outcome.measurement is not None
    incumbent = opponent_at(state, rung)
    named = outcome.measurement.against(incumbent) if incumbent else None
    return named or outcome.measurement.against("first")


def opponent_at(state: RunState, rung: int) -> str | None:
    """Whom a candidate is compared with on a rung: its incumbent, on the confirm rung the champion."""
    return state.champion if rung == CONFIRM else state.incumbents.get(rung)
