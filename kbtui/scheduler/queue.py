"""What to do next: the one decision that drives Algorithm 1."""

from kbtui.domain.event import Budget, ChildEntry, Decision, EndReason
from kbtui.domain.rung import COMPILE, CONFIRM, MEASURE, PROFILE, SCREEN
from kbtui.scheduler.actions import Action, AdmitFirst, Evaluate, Finish, Wait
from kbtui.scheduler.parents import choose_proposal
from kbtui.scheduler.policy import DEFAULT_POLICY, Policy
from kbtui.scheduler.state import RunState, Tried
from kbtui.scheduler.structures import standing

#: A score must be this much above the champion's before a confirmation is spent on it.
WORTH_CONFIRMING = 1.002


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
        if best := best_unconfirmed(state):
            return Evaluate(best.candidate.id, CONFIRM)
        if not _enough_left(state, wall_s, gpu_s):
            return Finish(EndReason.BUDGET, "the rest is too little for another candidate")
    return _search(state, policy)


def _search(state: RunState, policy: Policy) -> Action:
    """Screen everything that waits, then measure the best of it; ask for more when the pipeline runs dry."""
    lower, upper = _lower(state), _upper(state)
    room = _room(state, policy)
    if room and not lower and len(upper) <= 1 and (proposal := choose_proposal(state, room, policy)):
        return proposal
    if confirm := _confirm_now(state):
        return confirm
    if upper and (state.just_proposed or not lower):
        return upper[0]
    if lower:
        return lower[0]
    if best := best_unconfirmed(state):
        return Evaluate(best.candidate.id, CONFIRM)
    return Finish(EndReason.EXHAUSTED, "every generator has said all it knows about every parent")


def _lower(state: RunState) -> list[Evaluate]:
    """Work on the two cheapest rungs, the screen first: nothing waits for a compiler that has its source already."""
    return [Evaluate(t.candidate.id, rung) for rung in (SCREEN, COMPILE) for t in state.waiting(rung)]


def _upper(state: RunState) -> list[Evaluate]:
    """Work on the measure and profile rungs: pinned first, then the profile rung within its share, fastest first."""
    assert state.started is not None
    share = state.started.ladder[PROFILE].share
    rungs = (PROFILE, MEASURE) if within_share(state, PROFILE, share) else (MEASURE, PROFILE)
    queued = [(t, rung) for rung in rungs for t in state.waiting(rung)]
    queued.sort(key=lambda q: (not q[0].pinned, rungs.index(q[1]), -(standing(state, q[0]) or 0.0)))
    return [Evaluate(t.candidate.id, rung) for t, rung in queued]


def _room(state: RunState, policy: Policy) -> int:
    """How many candidates may be asked for now: none before the first kernel is timed, none past the budget."""
    baseline = state.tried.get(state.first or "")
    if baseline is not None and baseline.score is None and baseline.waiting_at is not None:
        return 0
    limit = state.budget.candidates
    return policy.batch if limit is None else max(0, min(policy.batch, limit - len(state.tried)))


def _confirm_now(state: RunState) -> Evaluate | None:
    """In mid-run only what the confirm rung's share allows; the end of the run confirms the best in any case."""
    assert state.started is not None
    best = best_unconfirmed(state)
    if best is None or best.waiting_at != CONFIRM:
        return None
    total_s = sum(s.wall_s for s in state.spend.values())
    used_s = state.spend[CONFIRM].wall_s if CONFIRM in state.spend else 0.0
    allowed = used_s + _confirm_cost_s(state) <= state.started.ladder[CONFIRM].share * total_s
    return Evaluate(best.candidate.id, CONFIRM) if best.pinned or allowed else None


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


def _enough_left(state: RunState, wall_s: float, gpu_s: float) -> bool:
    """Whether one more candidate could be measured and, should it lead, confirmed."""
    budget = state.budget
    below = [t.results[MEASURE].outcome.wall_s for t in state.tried.values() if MEASURE in t.results]
    need_s = _confirm_cost_s(state) + max(below, default=0.0)
    wall = budget.wall_s is None or budget.wall_s - wall_s > need_s
    return wall and (budget.gpu_s is None or budget.gpu_s - gpu_s > need_s)


def _confirm_cost_s(state: RunState) -> float:
    """Longest confirmation so far, else twice the longest profile-rung evaluation."""
    costs = [t.results[CONFIRM].outcome.wall_s for t in state.tried.values() if CONFIRM in t.results]
    below = [t.results[CONFIRM - 1].outcome.wall_s for t in state.tried.values() if CONFIRM - 1 in t.results]
    return max(costs) if costs else 2 * max(below, default=0.0)


def best_unconfirmed(state: RunState) -> Tried | None:
    """Who should be confirmed next: never confirmed, and by its score faster than the champion (or the first kernel).

    Candidates measured on all the problem's shapes come first; one that was only screened is better than nothing.
    """
    champion = state.tried.get(state.champion or "")
    bar = ((champion.score if champion else None) or 1.0) * WORTH_CONFIRMING
    hopeful = [t for t in state.tried.values() if CONFIRM not in t.results and (t.score or 0.0) > bar and _verified(t)]
    return max(hopeful, key=lambda t: (MEASURE in t.results, t.score, -t.admitted_seq), default=None)


def _verified(tried: Tried) -> bool:
    return tried.last is not None and tried.last.decision not in (Decision.REJECT, Decision.SET_ASIDE)


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
