"""Whom to confirm, and what that costs: the dearest rung is spent only on who may become the champion. Pure."""

from statistics import median

from kbtui.domain.evaluation import first_share
from kbtui.domain.event import Decision
from kbtui.domain.measurement import Clock, Outcome
from kbtui.domain.rung import CONFIRM, DEFAULT_LADDER, MEASURE, PROFILE, SCREEN
from kbtui.scheduler.policy import Policy
from kbtui.scheduler.state import RunState, Tried
from kbtui.scheduler.structures import is_eligible

#: A confirmation starts three processes for each side on every shape: about so many measure-rung evaluations.
_MEASURES_A_CONFIRMATION = 6
#: On a model of a GPU nothing is timed in processes: the hidden shapes come beside the others.
_MODELLED_MEASURES_A_CONFIRMATION = 2


def best_unconfirmed(state: RunState, policy: Policy, *, sure: bool = False) -> Tried | None:
    """Who should be confirmed next, None where nobody may be faster than the champion (or the first kernel).

    Who won on its last rung comes before who lost there: the loser's lead over others may be chance. Whoever was
    only screened is better than nothing while there is no champion. ``sure`` leaves out who is not sure to be ahead.
    """
    champion = state.tried.get(state.champion or "")
    leads = {t.candidate.id: _lead(t, champion) for t in state.tried.values() if CONFIRM not in t.results}
    most_processes = _most_process_pairs(state)

    def worth(tried: Tried) -> bool:
        if sure and is_unsure(tried):
            return False
        bar = policy.worth_confirming if _lost(tried) else 1.0
        return leads[tried.candidate.id] > bar and is_eligible(tried) and not _lost_to(tried, champion, most_processes)

    def rank(tried: Tried) -> tuple[bool, bool, float, int]:
        return MEASURE in tried.results, not _lost(tried), leads[tried.candidate.id], -tried.admitted_seq

    return max((t for i in leads if worth(t := state.tried[i])), key=rank, default=None)


def _lead(tried: Tried, champion: Tried | None) -> float:
    """Its speed over the champion's on the highest rung that timed both, over the first kernel's without a champion.

    Rungs time different shapes, so scores of two rungs are never compared; 0.0 where nothing can be said.
    """
    if champion is None:
        return tried.score or 0.0
    measured = MEASURE in champion.results
    for rung in range(CONFIRM - 1, (MEASURE if measured else SCREEN) - 1, -1):
        mine, held = (t.results[rung].score if rung in t.results else None for t in (tried, champion))
        if mine and held:
            return mine / held
    return 0.0


def _lost(tried: Tried) -> bool:
    return tried.last is not None and tried.last.decision is Decision.PRUNE


def is_unsure(tried: Tried) -> bool:
    """Whether its last comparison on the rungs did not say whether it is faster."""
    measurement = tried.last.outcome.measurement if tried.last else None
    return bool(measurement and measurement.comparisons and measurement.comparisons[0].outcome is Outcome.UNCLEAR)


def _most_process_pairs(state: RunState) -> int:
    """How many process pairs a confirmation may play."""
    confirm = state.started.ladder[CONFIRM] if state.started else DEFAULT_LADDER[CONFIRM]
    return confirm.process_pairs + confirm.more_process_pairs


def _lost_to(tried: Tried, champion: Tried | None, most_processes: int) -> bool:
    """Whether it met this very champion on a rung below and was not faster; who was ahead may be, in more processes."""
    if champion is None or tried.last is None or tried.last.outcome.measurement is None:
        return False
    met = tried.last.outcome.measurement.against(champion.candidate.id)
    if met is None or met.outcome is Outcome.FASTER:
        return False
    may_tell = met.outcome is Outcome.UNCLEAR and met.ratio > 1 and met.n_processes < most_processes
    return not may_tell


def confirm_cost_s(state: RunState, policy: Policy) -> float:
    """What a confirmation may take: with a margin over the longest so far, or over what lower rungs suggest; seconds.

    Without further process pairs, which most do without: one that took them makes no other unaffordable.
    """
    return policy.confirm_margin * max(_confirmations_s(state), default=0.0)


def expected_confirm_s(state: RunState) -> float:
    """What a confirmation is likely to take, without a margin: by the median of what is known; seconds."""
    return median(_confirmations_s(state) or [0.0])


def _confirmations_s(state: RunState) -> list[float]:
    """What confirmations took; before there are any, what evaluations on the rung below suggest that one takes."""
    modelled = state.started is not None and state.started.device.clock is Clock.MODELLED
    measures = _MODELLED_MEASURES_A_CONFIRMATION if modelled else _MEASURES_A_CONFIRMATION
    for rung, as_many in ((CONFIRM, 1), (PROFILE, 1), (MEASURE, measures)):
        first_pairs = state.started.ladder[rung].process_pairs if state.started else 0
        found = [t.results[rung].outcome for t in state.tried.values() if rung in t.results]
        if found:
            return [as_many * outcome.wall_s * first_share(outcome, first_pairs) for outcome in found]
    return []
