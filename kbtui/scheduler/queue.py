"""What to do next: the one decision that drives Algorithm 1."""

from kbtui.domain.event import Budget, ChildEntry, Decision, EndReason
from kbtui.domain.rung import CONFIRM, MEASURE, SCREEN
from kbtui.scheduler.actions import Action, AdmitFirst, Evaluate, Finish, Wait
from kbtui.scheduler.parents import choose_proposal
from kbtui.scheduler.policy import DEFAULT_POLICY, Policy
from kbtui.scheduler.state import RunState, Tried


def next_action(
    state: RunState, wall_s: float, gpu_s: float, *, has_first: bool, policy: Policy = DEFAULT_POLICY
) -> Action:
    """The next action, given what has been spent by now (seconds). Pure.

    ``has_first``: the problem brings its own kernel, which is admitted before anything else.
    """
    if state.stop_asked:
        return Finish(EndReason.STOPPED, "stopped by the user")
    if state.paused:
        return Wait()
    if has_first and state.first is None:
        return AdmitFirst()
    spent = budget_spent(state.budget, state, wall_s, gpu_s)
    if spent is not None:
        return Finish(EndReason.BUDGET, spent)
    if in_reserve(state, wall_s, gpu_s, policy):
        best = best_unconfirmed(state)
        return (
            Evaluate(best.candidate.id, CONFIRM)
            if best
            else Finish(EndReason.BUDGET, "the rest is too little for another candidate")
        )
    return _search(state, policy)


def _search(state: RunState, policy: Policy) -> Action:
    more = _wants_proposals(state, policy)
    if more and (proposal := choose_proposal(state, policy)):
        return proposal
    if chosen := _next_waiting(state):
        return chosen
    if best := best_unconfirmed(state):
        return Evaluate(best.candidate.id, CONFIRM)
    return Finish(EndReason.EXHAUSTED, "every generator has said all it knows about every parent")


def _wants_proposals(state: RunState, policy: Policy) -> bool:
    if state.budget.candidates is not None and len(state.tried) >= state.budget.candidates:
        return False
    baseline = state.tried.get(state.first or "")
    if baseline is not None and baseline.score is None and baseline.waiting_at is not None:
        return False
    return len(state.waiting(0)) < policy.low_water


def _next_waiting(state: RunState) -> Evaluate | None:
    """The highest rung that has work and is within its share; if all are over, the lowest that has work."""
    assert state.started is not None
    over: Evaluate | None = None
    for rung in reversed(state.started.ladder):
        queued = state.waiting(rung.index)
        if not queued:
            continue
        chosen = Evaluate(queued[0].candidate.id, rung.index)
        if queued[0].pinned or within_share(state, rung.index, rung.share):
            return chosen
        over = chosen
    return over


def within_share(state: RunState, rung: int, share: float) -> bool:
    """Whether a rung has used less than its share of what the evaluations have cost so far (with a small floor)."""
    total = sum(s.wall_s for s in state.spend.values())
    used = state.spend[rung].wall_s if rung in state.spend else 0.0
    return used <= share * total + 2.0


def budget_spent(budget: Budget, state: RunState, wall_s: float, gpu_s: float) -> str | None:
    """Which limit is reached, in words, or None."""
    if budget.wall_s is not None and wall_s >= budget.wall_s:
        return f"{budget.wall_s:.0f} s of wall time"
    if budget.gpu_s is not None and gpu_s >= budget.gpu_s:
        return f"{budget.gpu_s:.0f} s of GPU time"
    done = budget.candidates is not None and len(state.tried) >= budget.candidates
    if done and not any(t.waiting_at is not None for t in state.tried.values()) and best_unconfirmed(state) is None:
        return f"{budget.candidates} candidates"
    return None


def in_reserve(state: RunState, wall_s: float, gpu_s: float, policy: Policy) -> bool:
    """Whether what is left is only enough to confirm the best."""
    budget = state.budget
    if budget.wall_s is not None:
        confirm_s = _confirm_cost_s(state)
        reserve_s = min(max(policy.confirm_reserve * budget.wall_s, 1.3 * confirm_s), 0.5 * budget.wall_s)
        if wall_s >= budget.wall_s - reserve_s:
            return True
    return budget.gpu_s is not None and gpu_s >= budget.gpu_s * (1 - policy.confirm_reserve)


def _confirm_cost_s(state: RunState) -> float:
    """Longest confirmation so far, else twice the longest profile-rung evaluation."""
    costs = [t.results[CONFIRM].outcome.wall_s for t in state.tried.values() if CONFIRM in t.results]
    below = [t.results[CONFIRM - 1].outcome.wall_s for t in state.tried.values() if CONFIRM - 1 in t.results]
    return max(costs) if costs else 2 * max(below, default=0.0)


def best_unconfirmed(state: RunState) -> Tried | None:
    """The fastest candidate that beats the champion by score and was never on the confirm rung."""
    champion = state.tried.get(state.champion or "")
    bar = (champion.score if champion else None) or 1.0
    hopeful = [
        t
        for t in state.tried.values()
        if t.score is not None
        and t.score > bar * 1.002
        and CONFIRM not in t.results
        and MEASURE in t.results
        and t.last is not None
        and t.last.decision not in (Decision.REJECT, Decision.SET_ASIDE)
    ]
    return max(hopeful, key=lambda t: (t.score or 0.0, -t.admitted_seq), default=None)


def entry_rung(state: RunState, parent: Tried | None) -> int:
    """Where a new candidate goes after rung 0.

    The paper's rule: the rung its parent was promoted to, at most the measure rung, within that rung's share;
    the screen otherwise, and always with ``child_entry = screen``.
    """
    assert state.started is not None
    if parent is None or state.started.child_entry is ChildEntry.SCREEN:
        return SCREEN
    promoted = [r.rung + 1 for r in parent.results.values() if r.decision in (Decision.PROMOTE, Decision.CROWN)]
    rung = min(max(promoted, default=SCREEN), MEASURE)
    ladder = state.started.ladder
    return rung if rung > SCREEN and within_share(state, rung, ladder[rung].share) else SCREEN
