"""What to do next: order of rungs, budgets, reserve, proposals."""

import copy
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.domain.candidate import Origin
from kbtui.domain.event import Budget, CommandAccepted, CommandKind, EndReason
from kbtui.domain.rung import CONFIRM, MEASURE, PROFILE, SCREEN
from kbtui.engine.memory_ledger import MemoryLedger
from kbtui.scheduler.actions import Action, AdmitFirst, Evaluate, Finish, Propose, Wait
from kbtui.scheduler.budget import budget_spent
from kbtui.scheduler.confirm import best_unconfirmed, confirm_cost_s, expected_confirm_s
from kbtui.scheduler.policy import DEFAULT_POLICY
from kbtui.scheduler.queue import next_action
from kbtui.scheduler.state import RunState
from tests.fakes.search import PlantedDevice, engine_on


def states() -> list[RunState]:
    """Every state a whole planted search went through."""
    ledger = MemoryLedger()
    engine_on(ledger, PlantedDevice()).run()
    passed = []
    for n in range(1, len(ledger.log) + 1):
        state = RunState()
        for envelope in ledger.log[:n]:
            state.apply(envelope)
        passed.append(state)
    return passed


STATES = states()


def action_of(state: RunState, wall_s: float = 0.0, gpu_s: float = 0.0) -> Action:
    return next_action(state, wall_s, gpu_s, has_first=True)


@given(st.sampled_from(STATES), st.floats(0, 1000), st.floats(0, 1000))
def test_the_same_state_always_gives_the_same_action(state: RunState, wall_s: float, gpu_s: float) -> None:
    assert action_of(state, wall_s, gpu_s) == action_of(state, wall_s, gpu_s)


@given(st.sampled_from(STATES))
def test_an_evaluation_is_never_repeated(state: RunState) -> None:
    match action_of(state):
        case Evaluate(candidate, rung):
            assert rung not in state.tried[candidate].results


@given(st.sampled_from(STATES[2:]), st.floats(100, 10_000))
def test_nothing_is_evaluated_once_the_wall_budget_is_spent(state: RunState, wall_s: float) -> None:
    state = replace(state, budget=Budget(wall_s=100.0))
    action = action_of(state, wall_s)
    assert isinstance(action, Finish)
    assert action.reason is EndReason.BUDGET


@pytest.mark.parametrize(
    ("budget", "says"),
    [
        (Budget(wall_s=600.0), "600 s of wall time"),
        (Budget(wall_s=1.5), "1.5 s of wall time"),
        (Budget(wall_s=0.001), "0.001 s of wall time"),
        (Budget(gpu_s=600.0), "600 s of GPU time"),
        (Budget(gpu_s=0.25), "0.25 s of GPU time"),
        (Budget(candidates=1), "1 candidate"),
        (Budget(candidates=2), "2 candidates"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_limit_that_is_reached_is_told_as_it_was_given(budget: Budget, says: str) -> None:
    reached = [budget_spent(replace(s, budget=budget), 700.0, 700.0, DEFAULT_POLICY) for s in STATES]
    assert {told for told in reached if told is not None} == {says}


@given(st.sampled_from(STATES[2:]), st.floats(89, 99.9))
def test_in_the_reserve_whoever_may_be_best_is_confirmed_before_anything_else(state: RunState, wall_s: float) -> None:
    hopeful = best_unconfirmed(state, DEFAULT_POLICY)
    action = action_of(replace(state, budget=Budget(wall_s=100.0)), wall_s)
    if hopeful is not None:
        assert action == Evaluate(hopeful.candidate.id, CONFIRM)


def costly(state: RunState, confirm_s: float) -> RunState:
    """The same state, had its confirmation taken so long."""
    state = copy.deepcopy(state)
    for tried in state.tried.values():
        if CONFIRM in tried.results:
            result = tried.results[CONFIRM]
            tried.results[CONFIRM] = replace(result, outcome=replace(result.outcome, wall_s=confirm_s))
    return state


@given(
    st.sampled_from([s for s in STATES if s.champion and best_unconfirmed(s, DEFAULT_POLICY) is None]),
    st.floats(89, 99.9),
)
def test_a_run_ends_when_what_is_left_could_not_confirm_anyone(state: RunState, wall_s: float) -> None:
    state = replace(costly(state, confirm_s=12.0), budget=Budget(wall_s=100.0))
    assert isinstance(action_of(state, wall_s), Finish)


def without_champion(state: RunState) -> RunState:
    """The same state, had nobody been timed but the first kernel, and one still waited at the screen."""
    state = copy.deepcopy(state)
    state.champion = None
    for tried in state.tried.values():
        if tried.candidate.id != state.first:
            tried.results, tried.waiting_at = {}, None
    tried.waiting_at = SCREEN
    return state


CONFIRMED = [s for s in STATES if s.champion and len(s.tried) > 2]


@given(st.sampled_from(CONFIRMED), st.floats(70, 99.9))
def test_without_a_champion_the_rest_of_a_budget_goes_into_finding_one(state: RunState, wall_s: float) -> None:
    action = action_of(replace(without_champion(state), budget=Budget(wall_s=100.0)), wall_s)
    assert not isinstance(action, Finish)


def with_measured(state: RunState, measured_s: float, longest_s: float) -> RunState:
    """The same state, had nobody climbed beyond the measure rung: the first took longest, the others alike."""
    state = copy.deepcopy(state)
    state.champion = None
    for tried in state.tried.values():
        for rung in (PROFILE, CONFIRM):
            tried.results.pop(rung, None)
        if measured := tried.results.get(MEASURE):
            took_s = longest_s if tried.candidate.id == state.first else measured_s
            tried.results[MEASURE] = replace(measured, outcome=replace(measured.outcome, wall_s=took_s))
    return state


MEASURED = [s for s in CONFIRMED if sum(MEASURE in t.results for t in s.tried.values()) > 2]


@given(st.sampled_from(MEASURED), st.floats(0.1, 10.0), st.floats(1.0, 20.0))
def test_a_first_champion_is_confirmed_beyond_the_budget_but_not_where_that_is_likely_to_take_longer_than_all_of_it(
    state: RunState, measured_s: float, times: float
) -> None:
    """One evaluation that took long, as the first on a device does, keeps nobody from it."""
    state = with_measured(state, measured_s, times * measured_s)
    hopeful, likely_s = best_unconfirmed(state, DEFAULT_POLICY), expected_confirm_s(state)
    assert hopeful is not None
    assert measured_s < likely_s < confirm_cost_s(state, DEFAULT_POLICY)
    assert likely_s == expected_confirm_s(with_measured(state, measured_s, measured_s))

    def at_the_end_of(limit_s: float) -> Action:
        return action_of(replace(state, budget=Budget(wall_s=limit_s)), 0.99 * limit_s)

    assert at_the_end_of(1.01 * likely_s) == Evaluate(hopeful.candidate.id, CONFIRM)
    action = at_the_end_of(0.99 * likely_s)
    assert not (isinstance(action, Evaluate) and action.rung == CONFIRM)


def test_the_first_kernel_comes_first() -> None:
    assert isinstance(action_of(STATES[0]), AdmitFirst)


def test_a_paused_run_waits_and_a_stopped_one_ends() -> None:
    assert isinstance(action_of(replace(STATES[5], paused=True)), Wait)
    assert isinstance(action_of(replace(STATES[5], paused=True, stop_asked=True)), Finish)


def test_the_planted_search_both_proposes_and_evaluates() -> None:
    kinds = {type(action_of(s)) for s in STATES[1:-1]}
    assert {Propose, Evaluate} <= kinds


def test_a_pinned_candidate_is_taken_before_older_ones_on_its_rung() -> None:
    crowded = copy.deepcopy(next(s for s in STATES if len(s.waiting(0)) > 1))
    last = crowded.waiting(0)[-1].candidate.id
    ledger = MemoryLedger()
    envelope = ledger.append(CommandAccepted(1, CommandKind.PIN, last), 0.0, 0.0)
    crowded.apply(replace(envelope, seq=crowded.seq + 1))
    assert crowded.waiting(0)[0].candidate.id == last


def test_what_a_person_handed_in_is_taken_before_older_drafts_and_after_what_is_pinned() -> None:
    crowded = copy.deepcopy(next(s for s in STATES if len(s.waiting(0)) > 1))
    drafts = crowded.waiting(0)
    handed_in = drafts[-1]
    handed_in.candidate = replace(handed_in.candidate, origin=Origin("person", "submit"))
    assert crowded.waiting(0) == [handed_in, *drafts[:-1]]
    drafts[0].pinned = True
    assert crowded.waiting(0)[:2] == [drafts[0], handed_in]


def with_wait(state: RunState, *, at: int, structure: str, score: float) -> RunState:
    """The same state, with the first candidate of a structure screened at this score and waiting on a rung."""
    state = copy.deepcopy(state)
    tried = next(t for t in state.tried.values() if t.candidate.structure == structure)
    screened = replace(state.tried["c0001"].results[SCREEN], candidate=tried.candidate.id, score=score)
    tried.results, tried.waiting_at = {SCREEN: screened}, at
    return state


def measured_leader() -> RunState:
    """A state in which the leader of the measure rung waits for its profile."""
    return next(
        s for s in STATES if (leader := s.incumbents.get(MEASURE)) not in (None, "c0001")
        and s.tried[leader].waiting_at == PROFILE
    )  # fmt: skip


def test_the_leaders_profile_waits_until_who_did_well_at_the_screen_is_measured() -> None:
    state = with_wait(measured_leader(), at=MEASURE, structure="toy/2", score=1.05)
    waits = next(t for t in state.tried.values() if t.candidate.structure == "toy/2")
    assert action_of(replace(state, just_proposed=True)) == Evaluate(waits.candidate.id, MEASURE)


def test_no_profile_fills_the_seconds_in_which_sources_compile_unless_a_person_asked_for_it() -> None:
    state = copy.deepcopy(measured_leader())
    leader = state.tried[state.incumbents[MEASURE]]
    others = [t for t in state.tried.values() if t is not leader]
    for tried in others:
        tried.waiting_at = None
    others[-1].waiting_at, state.just_proposed = SCREEN, True
    assert action_of(state) == Evaluate(others[-1].candidate.id, SCREEN)
    leader.pinned = True
    assert action_of(state) == Evaluate(leader.candidate.id, PROFILE)


def test_a_parent_is_profiled_before_a_generator_that_reads_diagnoses_is_asked_about_it() -> None:
    state = copy.deepcopy(next(s for s in STATES if s.all_drafted and isinstance(action_of(s), Propose)))
    state.started = replace(state.started, generators=("llm",)) if state.started else None
    for tried in state.tried.values():
        tried.waiting_at = None
    asked = action_of(state)
    assert isinstance(asked, Propose)
    assert asked.generator == "llm"
    state.tried[asked.parent or ""].waiting_at = PROFILE
    assert action_of(state) == Evaluate(asked.parent or "", PROFILE)
    further = replace(DEFAULT_POLICY, measure_slack=math.inf)
    assert next_action(state, 0.0, 0.0, has_first=True, policy=further) == asked, "who trails far is not worth it"


def test_the_playbook_is_asked_without_waiting_for_a_profile() -> None:
    state = copy.deepcopy(next(s for s in STATES if s.all_drafted and isinstance(action_of(s), Propose)))
    for tried in state.tried.values():
        tried.waiting_at = None
    asked = action_of(state)
    assert isinstance(asked, Propose)
    state.tried[asked.parent or ""].waiting_at = PROFILE
    assert action_of(state) == asked


@given(st.sampled_from(STATES), st.booleans())
def test_a_profile_that_nobody_asks_for_is_never_begun(state: RunState, may_end: bool) -> None:
    state = copy.deepcopy(state)
    for tried in state.tried.values():
        tried.waiting_at = PROFILE if tried.candidate.id != state.incumbents.get(MEASURE) else None
    action = action_of(state) if not may_end else action_of(replace(state, budget=Budget(wall_s=100.0)), 90.0)
    assert not (isinstance(action, Evaluate) and action.rung == PROFILE)


def test_while_structures_are_still_drafted_nobody_is_profiled() -> None:
    state = copy.deepcopy(measured_leader())
    state.all_drafted, state.exhausted = False, set()
    for tried in state.tried.values():
        tried.waiting_at = PROFILE if tried.candidate.id == state.incumbents[MEASURE] else None
    for just_proposed in (False, True):
        asked = action_of(replace(state, just_proposed=just_proposed))
        assert isinstance(asked, Propose)
        assert asked.parent is None


def crowded_screen(n_later: int) -> tuple[RunState, str]:
    """Who leads the screen waits to be measured, ``n_later`` others were screened after it, one still waits there."""
    state = copy.deepcopy(measured_leader())
    model = state.tried["c0001"]
    names = [f"c1{number:03}" for number in range(n_later + 2)]
    for number, name in enumerate(names):
        candidate = replace(model.candidate, id=name, source_sha=name)
        screened = {SCREEN: replace(model.results[SCREEN], candidate=name)} if name != names[-1] else {}
        waits = {0: MEASURE, n_later + 1: SCREEN}.get(number)
        state.tried[name] = replace(
            model, candidate=candidate, admitted_seq=1000 + number, waiting_at=waits, results=screened
        )
    state.incumbents[SCREEN], state.just_proposed = names[0], False
    return state, names[0]


def test_who_leads_the_screen_is_measured_once_it_has_seen_off_some_that_came_later() -> None:
    enough = DEFAULT_POLICY.seen_off
    state, leader = crowded_screen(enough)
    assert action_of(state) == Evaluate(leader, MEASURE)
    state, _ = crowded_screen(enough - 1)
    action = action_of(state)
    assert isinstance(action, Evaluate)
    assert action.rung == SCREEN
    state, leader = crowded_screen(enough)
    state.tried[leader].waiting_at = None
    action = action_of(state)
    assert isinstance(action, Evaluate)
    assert action.rung == SCREEN, "a leader that is measured, or pruned, holds nobody up"


def test_who_leads_the_screen_is_not_measured_before_whom_a_person_pinned_there() -> None:
    state, leader = crowded_screen(DEFAULT_POLICY.seen_off)
    last = max(state.tried.values(), key=lambda t: t.admitted_seq if SCREEN in t.results else -1)
    last.waiting_at = MEASURE
    assert action_of(state) == Evaluate(leader, MEASURE)
    last.pinned = True
    assert action_of(state) == Evaluate(last.candidate.id, MEASURE)
