"""Whom to ask about which parent."""

import copy
from dataclasses import replace

from benchmarks.landscapes import search
from kbtui.domain.event import ProposalsMade
from kbtui.domain.rung import MEASURE
from kbtui.scheduler.parents import choose_proposal, gains_a_minute
from kbtui.scheduler.policy import DEFAULT_POLICY
from kbtui.scheduler.state import RunState, Yield
from kbtui.scheduler.structures import best_of_each


def refining() -> RunState:
    """A search of the playbook's half-way through, with a second generator that was never asked."""
    state = copy.deepcopy(search(1, 120.0)[0].state)
    assert state.started is not None
    state.started = replace(state.started, generators=("playbook", "rewrites"))
    return state


def test_a_generator_that_was_never_asked_gets_its_turn() -> None:
    state = refining()
    asked = choose_proposal(state, 6, DEFAULT_POLICY)
    assert asked is not None
    assert asked.generator == "rewrites"


def test_drafts_do_not_count_as_gains() -> None:
    state = refining()
    led = [t for t in state.tried.values() if MEASURE in t.results and t.results[MEASURE].new_incumbent]
    assert any(not t.candidate.parents for t in led), "no draft ever led, so nothing is tested"
    refined = [t for t in state.tried.values() if t.candidate.parents]
    before = gains_a_minute(state, "playbook")
    for tried in led:
        if tried.candidate.parents:
            tried.results = {}
    assert refined
    assert gains_a_minute(state, "playbook") <= before
    assert gains_a_minute(state, "playbook") < gains_a_minute(state, "rewrites")


def test_a_generator_that_takes_long_to_answer_gains_less_a_minute() -> None:
    state = refining()
    quick = gains_a_minute(state, "rewrites")
    state.yields["rewrites"] = Yield(n_admitted=2, wall_s=90.0)
    assert gains_a_minute(state, "rewrites") < quick / 5


def test_where_the_best_of_a_structure_is_exhausted_the_next_best_is_asked_about() -> None:
    state = refining()
    first = choose_proposal(state, 6, DEFAULT_POLICY)
    assert first is not None
    structure = state.tried[first.parent or ""].candidate.structure
    for tried in state.tried.values():
        if tried.candidate.structure != structure:
            tried.dropped = True
    state.exhausted |= {("rewrites", first.parent), ("playbook", first.parent)}
    second = choose_proposal(state, 6, DEFAULT_POLICY)
    assert second is not None
    assert second.parent != first.parent
    assert state.tried[second.parent or ""].candidate.structure == structure


def test_a_structure_asked_about_in_vain_gives_way_to_another() -> None:
    state = refining()
    first = choose_proposal(state, 6, DEFAULT_POLICY)
    assert first is not None
    structures = {t.candidate.structure for t in state.tried.values()}
    seen = set()
    for seq in range(state.seq + 1, state.seq + 60):
        asked = choose_proposal(state, 6, DEFAULT_POLICY)
        assert asked is not None
        seen.add(state.tried[asked.parent or ""].candidate.structure)
        state.asked.append((seq, ProposalsMade(asked.generator, asked.parent, 6, 0, False, 0.1)))
    assert len(seen) >= 3 or seen == structures


def test_drafts_that_are_left_are_asked_for_before_a_search_is_called_exhausted() -> None:
    state = refining()
    state.all_drafted = True
    state.exhausted = {(g, t) for g in ("playbook", "rewrites") for t in state.tried}
    asked = choose_proposal(state, 6, DEFAULT_POLICY)
    assert asked is not None
    assert (asked.generator, asked.parent) == ("playbook", None)
    state.exhausted.add(("playbook", None))
    assert choose_proposal(state, 6, DEFAULT_POLICY) is None


def test_drafts_that_are_left_come_before_parents_that_promise_less_than_structures_do() -> None:
    state = refining()
    state.all_drafted = True
    far = best_of_each(state, lambda _: True)[-1][0]
    others = {t for t in state.tried if t != far.candidate.id}
    state.exhausted = {("rewrites", t) for t in state.tried} | {("playbook", t) for t in others}
    asked = choose_proposal(state, 6, DEFAULT_POLICY)
    assert asked is not None
    assert asked.parent is None


def test_drafts_that_are_left_promise_less_only_by_questions_for_drafts() -> None:
    state = refining()
    state.all_drafted = True
    far = best_of_each(state, lambda _: True)[-1][0]
    others = {t for t in state.tried if t != far.candidate.id}
    state.exhausted = {("rewrites", t) for t in state.tried} | {("playbook", t) for t in others}
    foreign, drafts = (ProposalsMade(name, None, 0, 0, False, 0.1) for name in ("rewrites", "playbook"))
    state.asked += [(state.seq, foreign)] * 1000
    asked = choose_proposal(state, 6, DEFAULT_POLICY)
    assert asked is not None
    assert asked.parent is None
    state.asked += [(state.seq, drafts)] * 1000
    asked = choose_proposal(state, 6, DEFAULT_POLICY)
    assert asked is not None
    assert asked.parent == far.candidate.id
