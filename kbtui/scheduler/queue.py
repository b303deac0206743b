"""What to do next: the one decision that drives Algorithm 1. Pure."""

from dataclasses import replace

from kbtui.domain.event import ChildEntry, Decision, EndReason
from kbtui.domain.rung import COMPILE, CONFIRM, MEASURE, PROFILE, SCREEN
from kbtui.scheduler.actions import Action, AdmitFirst, Evaluate, Finish, Propose, Wait
from kbtui.scheduler.budget import budget_spent, in_reserve, is_affordable, is_borne, next_costs_s, within_share
from kbtui.scheduler.confirm import best_unconfirmed, confirm_cost_s, expected_confirm_s
from kbtui.scheduler.parents import awaited, choose_proposal, is_coarse, reads_diagnoses
from kbtui.scheduler.policy import DEFAULT_POLICY, Policy
from kbtui.scheduler.score import promise
from kbtui.scheduler.state import RunState, Tried


def next_action(
    state: RunState, wall_s: float, gpu_s: float, *, has_first: bool, policy: Policy = DEFAULT_POLICY
) -> Action:
    """The next action, given what has been spent by now (seconds).

    ``has_first``: the problem brings its own kernel, which is admitted before anything else.
    """
    if state.stop_asked:
        return Finish(EndReason.STOPPED, "stopped by the user")
    if state.paused:
        return Wait()
    if has_first and state.first is None:
        return AdmitFirst()
    spent = budget_spent(state, wall_s, gpu_s, policy)
    if spent is not None:
        return Finish(EndReason.BUDGET, spent)
    if in_reserve(state, wall_s, gpu_s, policy):
        if confirm := _confirm_last(state, wall_s, gpu_s, policy):
            return confirm
        return _with_the_rest(state, wall_s, gpu_s, policy)
    return _search(state, policy, _may_profile(state, wall_s, gpu_s, policy), wall_s)


def _with_the_rest(state: RunState, wall_s: float, gpu_s: float, policy: Policy) -> Action:
    """In the reserve, with nobody to confirm: without a champion all of it goes into finding one.

    Whoever leads the screen is measured at once then, for nobody who was only screened is handed over.
    """
    if state.champion is not None and not is_affordable(state, next_costs_s(state, policy), wall_s, gpu_s):
        return Finish(EndReason.BUDGET, "the rest is too little for another candidate")
    policy = policy if state.champion else replace(policy, seen_off=0)
    action = _search(state, policy, _may_profile(state, wall_s, gpu_s, policy), wall_s)
    if isinstance(action, Evaluate) and action.rung == CONFIRM and not state.tried[action.candidate].pinned:
        return Finish(EndReason.BUDGET, "the rest is too little to confirm the best")
    return action


def _may_profile(state: RunState, wall_s: float, gpu_s: float, policy: Policy) -> bool:
    """Within its share, and where it and a confirmation, which costs about the same, still fit into the budget."""
    return within_share(state, PROFILE) and is_affordable(state, 2 * confirm_cost_s(state, policy), wall_s, gpu_s)


def _confirm_last(state: RunState, wall_s: float, gpu_s: float, policy: Policy) -> Evaluate | None:
    """A first champion beyond the budget too, for a run without one has found nothing; another where it is affordable.

    Not where a confirmation is likely to take longer than the whole budget: such a run looks around, and what it hands
    over is said not to be confirmed. Where one failed there already, no price is paid for the next that is ahead
    without being sure of it.
    """
    affordable = is_affordable(state, confirm_cost_s(state, policy), wall_s, gpu_s)
    if not affordable and (state.champion is not None or not is_borne(state, expected_confirm_s(state))):
        return None
    failed = any(CONFIRM in t.results for t in state.tried.values())
    best = best_unconfirmed(state, policy, sure=failed and not affordable)
    return Evaluate(best.candidate.id, CONFIRM) if best else None


def _search(state: RunState, policy: Policy, may_profile: bool, wall_s: float) -> Action:
    """Screen everything that waits, then measure the best of it; ask for more when the pipeline runs dry.

    Whoever waits for a profile that nobody asks for may go on waiting to the end.
    """
    room = _room(state, policy)
    lower, upper = _lower(state), _upper(state, may_profile and not (room and is_coarse(state)))
    if room and not lower and len(upper) <= 1 and (proposal := choose_proposal(state, room, policy, wall_s)):
        return (may_profile and _diagnose_first(state, proposal, policy)) or proposal
    if confirm := _confirm_now(state, policy):
        return confirm
    if lower:
        return (state.just_proposed and _meanwhile(state, upper)) or _lasting_leader(state, policy) or lower[0]
    if upper:
        return upper[0]
    if room and (why := awaited(state, wall_s, policy)):
        return Wait(why)
    if best := best_unconfirmed(state, policy):
        return Evaluate(best.candidate.id, CONFIRM)
    return Finish(EndReason.EXHAUSTED, "every generator has said all it knows about every parent")


def _lower(state: RunState) -> list[Evaluate]:
    """Work on the two cheapest rungs, the screen first: nothing waits for a compiler that has its source already."""
    return [Evaluate(t.candidate.id, rung) for rung in (SCREEN, COMPILE) for t in state.waiting(rung)]


def _upper(state: RunState, may_profile: bool) -> list[Evaluate]:
    """Work on the measure and profile rungs, in the order it is done.

    Pinned candidates first; then who did well at the screen, who promises most first; then the profile of who leads
    the measure rung, so that no early leader costs a profile while a better one waits or has yet to be drafted; then
    mutations that nothing is known of.
    """
    queued = [(t, MEASURE) for t in state.waiting(MEASURE)]
    leader = state.incumbents.get(MEASURE) if may_profile else None
    queued += [(t, PROFILE) for t in state.waiting(PROFILE) if t.pinned or t.candidate.id == leader]
    queued.sort(key=lambda q: _place(state, *q))
    return [Evaluate(t.candidate.id, rung) for t, rung in queued]


def _meanwhile(state: RunState, upper: list[Evaluate]) -> Evaluate | None:
    """What fills the seconds in which new sources compile: no profile, unless a person asked for it, for that lasts
    longer and its kernel may have been overtaken by then."""
    return next((u for u in upper if u.rung < PROFILE or state.tried[u.candidate].pinned), None)


def _lasting_leader(state: RunState, policy: Policy) -> Evaluate | None:
    """Who leads the screen and has seen off some that came later: worth measuring before the rest is screened.

    What a person would be handed is somebody measured, so the rest of a batch would keep the best from them. Whom a
    person pinned goes first on that rung all the same.
    """
    leader = state.tried.get(state.incumbents.get(SCREEN, ""))
    if leader is None or leader.waiting_at != MEASURE:
        return None
    later = sum(SCREEN in t.results and t.admitted_seq > leader.admitted_seq for t in state.tried.values())
    if later < policy.seen_off:
        return None
    foremost = state.waiting(MEASURE)[0]
    return Evaluate((foremost if foremost.pinned else leader).candidate.id, MEASURE)


def _place(state: RunState, tried: Tried, rung: int) -> tuple[bool, int, float]:
    promised = promise(state, tried) or 0.0
    group = 1 if rung == PROFILE else 0 if promised else 2
    return not tried.pinned, group, -promised


def _diagnose_first(state: RunState, proposal: Propose, policy: Policy) -> Evaluate | None:
    """The parent's profile, where it waits for one and the generator will read it.

    Who trails far is asked about without: a profile costs as much as measuring several of its children does.
    """
    parent = state.tried.get(proposal.parent or "")
    if parent is None or parent.waiting_at != PROFILE or not reads_diagnoses(proposal.generator):
        return None
    far = (promise(state, parent) or 0.0) < policy.measure_slack
    return None if far else Evaluate(parent.candidate.id, PROFILE)


def _room(state: RunState, policy: Policy) -> int:
    """How many candidates may be asked for now: none before the first kernel is timed, none past the budget."""
    baseline = state.tried.get(state.first or "")
    if baseline is not None and baseline.score is None and baseline.waiting_at is not None:
        return 0
    limit = state.budget.candidates
    return policy.batch if limit is None else max(0, min(policy.batch, limit - len(state.tried)))


def _confirm_now(state: RunState, policy: Policy) -> Evaluate | None:
    """In mid-run only whom a person sent there, and what the confirm rung's share allows; the end confirms the best."""
    if pinned := next((t for t in state.waiting(CONFIRM) if t.pinned), None):
        return Evaluate(pinned.candidate.id, CONFIRM)
    best = best_unconfirmed(state, policy)
    if best is None or best.waiting_at != CONFIRM:
        return None
    allowed = within_share(state, CONFIRM, confirm_cost_s(state, policy))
    return Evaluate(best.candidate.id, CONFIRM) if allowed else None


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
    return rung if rung > SCREEN and within_share(state, rung) else SCREEN
