"""What a run may still spend: its limits, the reserve for the end, each rung's share. Pure."""

from dataclasses import replace

from kbtui.domain.rung import MEASURE, PROFILE, Rung
from kbtui.domain.wording import counted
from kbtui.scheduler.confirm import best_unconfirmed, confirm_cost_s
from kbtui.scheduler.policy import Policy
from kbtui.scheduler.state import RunState

#: Every rung may use this much before its share counts, in seconds: at the start shares of nothing say nothing.
_SHARE_FLOOR_S = 2.0


def budget_spent(state: RunState, wall_s: float, gpu_s: float, policy: Policy) -> str | None:
    """Which limit is reached, in words, or None. Who waits on the dear rungs holds nothing up."""
    budget = state.budget
    if budget.wall_s is not None and wall_s >= budget.wall_s:
        return f"{_seconds(budget.wall_s)} of wall time"
    if budget.gpu_s is not None and gpu_s >= budget.gpu_s:
        return f"{_seconds(budget.gpu_s)} of GPU time"
    full = budget.candidates is not None and len(state.tried) >= budget.candidates
    waits = any(t.waiting_at is not None and (t.pinned or t.waiting_at < PROFILE) for t in state.tried.values())
    if full and not waits and best_unconfirmed(state, policy) is None:
        return counted(budget.candidates or 0, "candidate")
    return None


def _seconds(limit_s: float) -> str:
    """``600 s``; a limit of a moment as it was given."""
    return f"{limit_s:.0f} s" if limit_s >= 10 else f"{limit_s:g} s"


def in_reserve(state: RunState, wall_s: float, gpu_s: float, policy: Policy) -> bool:
    """Whether what is left is only enough to confirm the best."""
    limits = ((state.budget.wall_s, wall_s), (state.budget.gpu_s, gpu_s))
    return any(limit is not None and used >= limit - _reserve_s(state, limit, policy) for limit, used in limits)


def _reserve_s(state: RunState, limit_s: float, policy: Policy) -> float:
    """What a confirmation costs, as far as that is known; never more than half of the budget."""
    return min(confirm_cost_s(state, policy) or policy.confirm_reserve * limit_s, 0.5 * limit_s)


def is_affordable(state: RunState, need_s: float, wall_s: float, gpu_s: float) -> bool:
    """Whether ``need_s`` more seconds fit into what is left."""
    budget = state.budget
    wall = budget.wall_s is None or wall_s + need_s <= budget.wall_s
    return wall and (budget.gpu_s is None or gpu_s + need_s <= budget.gpu_s)


def is_borne(state: RunState, need_s: float) -> bool:
    """Whether ``need_s`` seconds fit into the whole budget, whatever is left of it."""
    return is_affordable(state, need_s, 0.0, 0.0)


def rung_within(state: RunState, rung: int, wall_s: float, gpu_s: float, policy: Policy) -> Rung:
    """The rung of the run's ladder, without further process pairs where the rest of the budget would not bear them."""
    assert state.started is not None
    asked = state.started.ladder[rung]
    longer = 1 + asked.more_process_pairs / max(asked.process_pairs, 1)
    borne = longer == 1 or is_affordable(state, longer * confirm_cost_s(state, policy), wall_s, gpu_s)
    return asked if borne else replace(asked, more_process_pairs=0)


def next_costs_s(state: RunState, policy: Policy) -> float:
    """One more candidate measured and, should it lead, confirmed; seconds."""
    measured_s = [t.results[MEASURE].outcome.wall_s for t in state.tried.values() if MEASURE in t.results]
    return confirm_cost_s(state, policy) + max(measured_s, default=0.0)


def within_share(state: RunState, rung: int, more_s: float = 0.0) -> bool:
    """Whether a rung, had it used ``more_s`` seconds more, is within its share of what the evaluations cost so far."""
    assert state.started is not None
    total_s = sum(s.wall_s for s in state.spend.values())
    used_s = state.spend[rung].wall_s if rung in state.spend else 0.0
    return used_s + more_s <= state.started.ladder[rung].share * total_s + _SHARE_FLOOR_S
