"""Promote or prune: what becomes of a candidate after a rung, and why, in numbers."""

from dataclasses import dataclass

from kbtui.domain.evaluation import RungOutcome
from kbtui.domain.event import Decision
from kbtui.domain.measurement import Comparison, Outcome
from kbtui.domain.rung import COMPILE, CONFIRM, MEASURE, PROFILE, SCREEN
from kbtui.domain.verdict import VerdictKind
from kbtui.scheduler.policy import DEFAULT_POLICY, Policy
from kbtui.scheduler.state import RunState
from kbtui.scheduler.structures import is_best_of_structure, n_timed, of_structure


@dataclass(frozen=True, slots=True)
class Judgement:
    decision: Decision
    reason: str
    score: float | None = None
    new_incumbent: bool = False


def judge(
    state: RunState, candidate: str, rung: int, outcome: RungOutcome, policy: Policy = DEFAULT_POLICY
) -> Judgement:
    """The decision on one outcome. Pure: the same state and outcome always give the same judgement."""
    verdict = outcome.verdict
    if verdict.kind is VerdictKind.REJECTED:
        return Judgement(Decision.REJECT, f"{verdict.reason}: {verdict.detail}")
    if verdict.kind is VerdictKind.UNVERIFIED:
        return Judgement(Decision.SET_ASIDE, f"{verdict.reason}: {verdict.detail}")
    if rung == COMPILE:
        return Judgement(Decision.PROMOTE, describe_resources(outcome))
    if outcome.measurement is None:
        return Judgement(Decision.SET_ASIDE, "verified, but nothing was timed")
    comparison = _against_incumbent(state, rung, outcome)
    score = chained_score(state, rung, outcome)
    if comparison is None:
        return _first_timed(state, candidate, rung, score)
    if outcome.measurement.unstable:
        return Judgement(Decision.PRUNE, f"unstable: {outcome.measurement.unstable}; {_numbers(comparison)}", score)
    if rung == CONFIRM:
        return _confirm(state, candidate, comparison, outcome, score)
    if candidate == state.first and rung < PROFILE:
        return Judgement(Decision.PROMOTE, f"the first kernel is timed on every rung; {_numbers(comparison)}", score)
    faster = comparison.outcome is Outcome.FASTER
    if faster:
        return Judgement(Decision.PROMOTE, _numbers(comparison), score, new_incumbent=True)
    return _not_faster(state, candidate, rung, comparison, score, policy)


def _first_timed(state: RunState, candidate: str, rung: int, score: float) -> Judgement:
    """Nobody to compare with yet. The first kernel is the baseline of every rung but is never a champion itself."""
    if candidate == state.first and rung >= PROFILE:
        return Judgement(Decision.PRUNE, "the baseline of the run: timed and diagnosed", score, new_incumbent=True)
    decision = Decision.CROWN if rung == CONFIRM else Decision.PROMOTE
    return Judgement(decision, "first to be timed on this rung", score, new_incumbent=True)


def _not_faster(
    state: RunState, candidate: str, rung: int, comparison: Comparison, score: float, policy: Policy
) -> Judgement:
    structure = state.tried[candidate].candidate.structure
    leads = is_best_of_structure(state, candidate, rung, score)
    numbers = _numbers(comparison)
    if rung == SCREEN:
        young = leads and n_timed(state, structure) < policy.refinements
        slack = policy.structure_slack if young else policy.screen_slack
        if comparison.outcome is not Outcome.SLOWER or comparison.high >= slack:
            why = f"best of {structure}, may trail to {slack:.2f}×" if young else f"may still reach {slack:.2f}×"
            return Judgement(Decision.PROMOTE, f"{numbers}; {why}", score)
    unprofiled = not any(PROFILE in t.results for t in of_structure(state, structure))
    if rung == MEASURE and leads and unprofiled and comparison.ratio >= policy.measure_slack:
        return Judgement(Decision.PROMOTE, f"{numbers}; best of {structure}, profiled once", score)
    return Judgement(Decision.PRUNE, numbers, score)


def _confirm(state: RunState, candidate: str, comparison: Comparison, outcome: RungOutcome, score: float) -> Judgement:
    numbers = _numbers(comparison)
    against_first = outcome.measurement.against("first") if outcome.measurement else None
    if against_first is not None and candidate != state.first and against_first.outcome is not Outcome.FASTER:
        return Judgement(Decision.PRUNE, f"not faster than the first kernel: {_numbers(against_first)}", score)
    if comparison.against == candidate or comparison.outcome is Outcome.FASTER or state.champion is None:
        return Judgement(Decision.CROWN, numbers, score, new_incumbent=True)
    return Judgement(Decision.PRUNE, f"not faster than the champion: {numbers}", score)


def chained_score(state: RunState, rung: int, outcome: RungOutcome) -> float:
    """S(p, r): speedup over the first kernel: the direct comparison if there is one, else chained by the incumbent."""
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


def describe_resources(outcome: RungOutcome) -> str:
    """The compiled kernels in one line."""
    if not outcome.resources:
        return "compiles"
    widest = max(outcome.resources, key=lambda r: r.registers)
    spills = f"{widest.spill_bytes} B spilled" if widest.spill_bytes else "no spills"
    return f"compiles: {widest.registers} registers, {spills}, occupancy {widest.occupancy:.0%} ({widest.limiter})"


def _numbers(comparison: Comparison) -> str:
    """A comparison in one line: ``+4.1 % (3.0–5.2) over c0031, 97.5 % sure, 14 pairs``."""
    change, low, high = ((r - 1.0) * 100 for r in (comparison.ratio, comparison.low, comparison.high))
    return (
        f"{change:+.1f} % ({low:.1f} to {high:.1f}) over {comparison.against}, {comparison.outcome}, "
        f"{comparison.confidence:.1%} sure, {comparison.n_pairs} pairs in {comparison.n_processes} processes"
    )
