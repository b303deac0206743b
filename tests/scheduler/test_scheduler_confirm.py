"""The dearest rung goes to whoever may become the champion, and to nobody else."""

from dataclasses import replace

from kbtui.domain.candidate import Candidate, Origin
from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.evaluation import RungOutcome
from kbtui.domain.event import (
    Budget,
    CandidateAdmitted,
    ChildEntry,
    CommandAccepted,
    CommandKind,
    Decision,
    Envelope,
    Event,
    RungCompleted,
    RunStarted,
)
from kbtui.domain.measurement import Clock, Comparison, Measurement, Outcome
from kbtui.domain.rung import COMPILE, CONFIRM, DEFAULT_LADDER, MEASURE, PROFILE, SCREEN
from kbtui.domain.verdict import Proof, verified
from kbtui.scheduler.actions import Action, Evaluate, Finish
from kbtui.scheduler.budget import rung_within
from kbtui.scheduler.confirm import best_unconfirmed, confirm_cost_s
from kbtui.scheduler.policy import DEFAULT_POLICY
from kbtui.scheduler.queue import next_action
from kbtui.scheduler.state import RunState

FIRST, OTHER, THIRD = "c0001", "c0002", "c0003"


def state_with(*events: Event, budget: Budget | None = None) -> RunState:
    started = RunStarted(
        "toy-1", "toy", "toy", "0", DATA_SHEETS["h200"], 0, budget or Budget(), ("playbook",), None,
        ChildEntry.PARENT, DEFAULT_LADDER,
    )  # fmt: skip
    state = RunState()
    admissions = [
        CandidateAdmitted(Candidate(c, c, (), Origin("person", "submit"), c, c), SCREEN, c)
        for c in (FIRST, OTHER, THIRD)
    ]
    for seq, event in enumerate((started, *admissions, *events)):
        state.apply(Envelope(seq, "", 0.0, 0.0, event))
    return state


def done(
    candidate: str, rung: int, score: float, decision: Decision = Decision.PROMOTE, *, met: str | None = None,
    outcome: Outcome = Outcome.UNCLEAR, wall_s: float = 1.0, ratio: float = 1.0, n_processes: int = 1,
) -> RungCompleted:  # fmt: skip
    """``met``: whom it was compared with there, with which outcome and ratio, and in how many process pairs."""
    met_them = (Comparison(met, outcome, ratio, 0.99, 1.01, 0.9, 20, n_processes),) if met else ()
    found = RungOutcome(verified(1, Proof.GPU), wall_s, wall_s, measurement=Measurement(Clock.MEASURED, (), met_them))
    return RungCompleted(candidate, rung, found, decision, "", score, decision is not Decision.PRUNE)


def hopeful(state: RunState) -> str | None:
    best = best_unconfirmed(state, DEFAULT_POLICY)
    return best.candidate.id if best else None


CROWNED = (done(OTHER, MEASURE, 1.38), done(OTHER, CONFIRM, 1.37, Decision.CROWN))


def test_a_score_on_the_screening_shape_says_nothing_beside_a_champion_measured_on_all() -> None:
    assert hopeful(state_with(*CROWNED, done(THIRD, SCREEN, 1.70, Decision.PRUNE))) is None
    assert hopeful(state_with(*CROWNED, done(THIRD, SCREEN, 1.70, Decision.PROMOTE))) is None


def test_who_is_faster_than_the_champion_on_the_same_rung_is_confirmed() -> None:
    assert hopeful(state_with(*CROWNED, done(THIRD, MEASURE, 1.41))) == THIRD


def test_the_champions_own_rung_counts_not_its_score_at_the_top() -> None:
    state = state_with(
        done(OTHER, MEASURE, 1.50), done(OTHER, CONFIRM, 1.37, Decision.CROWN), done(THIRD, MEASURE, 1.45)
    )
    assert hopeful(state) is None


def test_who_met_the_champion_and_was_not_faster_is_not_tried_again() -> None:
    lost = done(THIRD, MEASURE, 1.40, Decision.PRUNE, met=OTHER)
    assert hopeful(state_with(*CROWNED, lost)) is None


def test_who_met_the_champion_and_was_ahead_though_not_surely_is_told_apart_in_more_processes() -> None:
    """One process pair said nothing, and so may three where a confirmation plays more."""

    def after(outcome: Outcome, ratio: float, n_processes: int) -> str | None:
        ahead = done(THIRD, MEASURE, 1.38 * ratio, met=OTHER, outcome=outcome, ratio=ratio, n_processes=n_processes)
        return hopeful(state_with(*CROWNED, ahead))

    assert after(Outcome.UNCLEAR, 1.012, 1) == after(Outcome.UNCLEAR, 1.012, 3) == THIRD
    assert after(Outcome.UNCLEAR, 1.012, 6) is None
    assert after(Outcome.TIE, 1.012, 1) is after(Outcome.SLOWER, 1.012, 1) is after(Outcome.UNCLEAR, 0.999, 1) is None


def test_who_was_pruned_for_being_ahead_of_the_champion_by_little_is_not_tried_again() -> None:
    little = done(THIRD, PROFILE, 1.38 * 1.004, Decision.PRUNE, met=OTHER, ratio=1.004, n_processes=3)
    assert hopeful(state_with(*CROWNED, little)) is None


def test_a_winner_comes_before_a_loser_whose_chained_score_is_higher_by_chance() -> None:
    winner = done(OTHER, PROFILE, 1.380)
    loser = done(THIRD, MEASURE, 1.386, Decision.PRUNE, met=OTHER)
    assert hopeful(state_with(done(OTHER, MEASURE, 1.379), winner, loser)) == OTHER


def test_the_runner_up_gets_its_chance_where_the_leader_failed() -> None:
    leader = (done(OTHER, MEASURE, 1.50), done(OTHER, CONFIRM, 1.50, Decision.REJECT))
    assert hopeful(state_with(*leader, done(THIRD, MEASURE, 1.45, Decision.PRUNE, met=OTHER))) == THIRD


def test_with_no_champion_and_nothing_measured_a_screened_candidate_is_better_than_nothing() -> None:
    assert hopeful(state_with(done(THIRD, SCREEN, 1.2))) == THIRD


def test_who_a_person_pruned_is_not_confirmed() -> None:
    state = state_with(*CROWNED, done(THIRD, MEASURE, 1.6), CommandAccepted(1, CommandKind.PRUNE, THIRD))
    assert hopeful(state) is None


def test_what_a_confirmation_costs_is_learnt_from_the_highest_rung_seen() -> None:
    none = state_with()
    measured = state_with(done(OTHER, MEASURE, 1.3, wall_s=2.0))
    profiled = state_with(done(OTHER, MEASURE, 1.3, wall_s=2.0), done(OTHER, PROFILE, 1.3, wall_s=9.0))
    confirmed = state_with(done(OTHER, PROFILE, 1.3, wall_s=9.0), done(OTHER, CONFIRM, 1.3, wall_s=20.0))
    costs_s = [confirm_cost_s(s, DEFAULT_POLICY) for s in (none, measured, profiled, confirmed)]
    assert costs_s[0] == 0.0
    assert costs_s[2] == DEFAULT_POLICY.confirm_margin * 9.0
    assert costs_s[3] == DEFAULT_POLICY.confirm_margin * 20.0
    assert 2.0 < costs_s[1] < 20.0


def test_a_confirmation_that_took_further_processes_makes_no_other_dearer() -> None:
    long = done(OTHER, CONFIRM, 1.3, wall_s=20.0, met=FIRST, n_processes=6)
    usual = done(OTHER, CONFIRM, 1.3, wall_s=12.0, met=FIRST, n_processes=3)
    assert confirm_cost_s(state_with(long), DEFAULT_POLICY) == DEFAULT_POLICY.confirm_margin * 10.0
    assert confirm_cost_s(state_with(usual), DEFAULT_POLICY) == DEFAULT_POLICY.confirm_margin * 12.0


def test_further_processes_are_left_out_where_the_rest_of_the_budget_would_not_bear_them() -> None:
    events = (done(OTHER, CONFIRM, 1.3, wall_s=10.0, met=FIRST, n_processes=3),)
    bounded, endless = state_with(*events, budget=Budget(wall_s=100.0)), state_with(*events)
    whole, short = DEFAULT_LADDER[CONFIRM], replace(DEFAULT_LADDER[CONFIRM], more_process_pairs=0)
    assert rung_within(bounded, CONFIRM, 70.0, 0.0, DEFAULT_POLICY) == whole
    assert rung_within(bounded, CONFIRM, 80.0, 0.0, DEFAULT_POLICY) == short
    assert rung_within(endless, CONFIRM, 1e6, 0.0, DEFAULT_POLICY) == whole
    assert rung_within(bounded, MEASURE, 99.0, 0.0, DEFAULT_POLICY) == DEFAULT_LADDER[MEASURE]


def test_a_modelled_confirmation_is_expected_to_cost_less_for_nothing_is_timed_in_processes() -> None:
    modelled = state_with(done(OTHER, MEASURE, 1.3, wall_s=2.0))
    measured = state_with(done(OTHER, MEASURE, 1.3, wall_s=2.0))
    assert measured.started is not None
    chip = replace(measured.started.device, clock=Clock.MEASURED)
    measured.started = replace(measured.started, device=chip)

    modelled_s, measured_s = (confirm_cost_s(s, DEFAULT_POLICY) for s in (modelled, measured))

    assert measured_s == 3 * modelled_s


def at_the_end(*events: Event) -> Action:
    """What is done with 5 of 100 seconds left, where a confirmation takes 10."""
    compiled = [
        RungCompleted(c, COMPILE, done(c, COMPILE, 1.0).outcome, Decision.PRUNE, "", None, False) for c in (FIRST,)
    ]
    return next_action(state_with(*compiled, *events, budget=Budget(wall_s=100.0)), 95.0, 0.0, has_first=True)


def test_a_first_champion_is_confirmed_although_it_may_take_longer_than_what_is_left() -> None:
    assert at_the_end(done(OTHER, PROFILE, 1.3, wall_s=10.0)) == Evaluate(OTHER, CONFIRM)


def test_a_second_champion_is_not_confirmed_beyond_the_budget() -> None:
    crowned = (done(OTHER, MEASURE, 1.3), done(OTHER, CONFIRM, 1.3, Decision.CROWN, wall_s=10.0))
    assert isinstance(at_the_end(*crowned, done(THIRD, MEASURE, 1.6)), Finish)


def test_whom_a_person_sent_to_the_confirm_rung_is_confirmed_although_it_leads_nobody() -> None:
    compiled = RungCompleted(FIRST, COMPILE, done(FIRST, COMPILE, 1.0).outcome, Decision.PRUNE, "", None, False)
    behind = done(THIRD, PROFILE, 1.1, Decision.PRUNE)
    state = state_with(compiled, *CROWNED, behind, CommandAccepted(1, CommandKind.PROMOTE, THIRD))
    state.tried[FIRST].waiting_at = None
    state.exhausted |= {("playbook", c) for c in (None, FIRST, OTHER, THIRD)}
    assert next_action(state, 10.0, 0.0, has_first=True) == Evaluate(THIRD, CONFIRM)


def test_where_one_failed_no_price_is_paid_for_the_next_that_is_ahead_without_being_sure() -> None:
    ahead = done(OTHER, PROFILE, 1.01, wall_s=10.0, met=FIRST, outcome=Outcome.UNCLEAR)
    sure = done(OTHER, PROFILE, 1.01, wall_s=10.0, met=FIRST, outcome=Outcome.FASTER)
    failed = done(THIRD, CONFIRM, 1.0, Decision.PRUNE, wall_s=10.0)
    assert at_the_end(ahead) == Evaluate(OTHER, CONFIRM)
    assert at_the_end(ahead, failed) != Evaluate(OTHER, CONFIRM)
    assert at_the_end(sure, failed) == Evaluate(OTHER, CONFIRM)
