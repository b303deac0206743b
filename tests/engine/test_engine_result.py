"""What counts as better than the first kernel, and as a gain of a hint: adjudicated, and on one rung."""

from dataclasses import replace

import pytest

from kbtui.domain.candidate import Candidate, Origin
from kbtui.domain.evaluation import RungOutcome
from kbtui.domain.event import (
    Budget,
    CandidateAdmitted,
    Decision,
    EndReason,
    Envelope,
    Event,
    ProposalsMade,
    RunEnded,
    RungCompleted,
)
from kbtui.domain.measurement import Clock, Comparison, Measurement, Outcome
from kbtui.domain.rung import CONFIRM, MEASURE, SCREEN
from kbtui.domain.verdict import Proof, verified
from kbtui.engine.session import hint_outcomes
from kbtui.result import ShapeResult, ended_words, headline, kept_instead, run_result, times_words
from kbtui.scheduler.state import RunState
from tests.fakes.search import started


def state_of(*events: Event) -> RunState:
    state = RunState()
    for seq, event in enumerate((started(Budget()), *events)):
        state.apply(Envelope(seq, "2026-01-01T00:00:00Z", 0.0, 0.0, event))
    return state


def admitted(number: int, parent: int | None = None, hint: str | None = None) -> tuple[Event, ...]:
    name = f"c{number:04d}"
    parents = (f"c{parent:04d}",) if parent else ()
    made = Candidate(name, name, parents, Origin("seed" if number == 1 else "playbook", "op", hint), "s", name)
    return CandidateAdmitted(made, 1, name), ProposalsMade("playbook", None, 1, 0, False, 0.0)


def timed(number: int, rung: int, against: str, outcome: Outcome, score: float, leads: bool = True) -> RungCompleted:
    comparison = Comparison(against, outcome, score, score - 0.01, score + 0.01, 0.9, 8, 3)
    found = RungOutcome(verified(rung, Proof.GPU), 0.1, 0.1, measurement=Measurement(Clock.MEASURED, (), (comparison,)))
    decision = Decision.CROWN if rung == CONFIRM else Decision.PROMOTE
    return RungCompleted(f"c{number:04d}", rung, found, decision, "", score, leads)


FIRST = (*admitted(1), timed(1, MEASURE, "first", Outcome.TIE, 1.0))


@pytest.mark.parametrize(
    ("outcome", "better"), [(Outcome.FASTER, "c0002"), (Outcome.TIE, None), (Outcome.SLOWER, None)]
)
def test_a_score_above_one_is_better_only_where_the_adjudication_says_faster(outcome, better):
    state = state_of(*FIRST, *admitted(2), timed(2, MEASURE, "c0001", outcome, 1.02))
    assert run_result(state).champion == better


def test_faster_than_one_that_is_faster_than_the_first_is_better():
    second = (*admitted(2), timed(2, MEASURE, "first", Outcome.FASTER, 1.2))
    third = (*admitted(3), timed(3, MEASURE, "c0002", Outcome.FASTER, 1.3))
    assert run_result(state_of(*FIRST, *second, *third)).champion == "c0003"


def test_faster_than_one_that_only_seems_faster_than_the_first_is_not():
    second = (*admitted(2), timed(2, MEASURE, "first", Outcome.TIE, 1.2))
    third = (*admitted(3), timed(3, MEASURE, "c0002", Outcome.FASTER, 1.3))
    assert run_result(state_of(*FIRST, *second, *third)).champion is None


def test_candidates_that_nobody_tried_are_not_said_to_have_been_searched():
    left = (*admitted(2), *admitted(3))
    result = run_result(state_of(*FIRST, *left, RunEnded(EndReason.BUDGET, "the rest is too little")))
    assert headline(result).startswith(
        "nothing faster than the first kernel was found in 1 candidate, 2 more not tried"
    )
    assert ended_words(result) == "budget; the rest is too little, after 1 candidate, 2 more not tried"


def test_how_a_run_ended_is_said_once():
    stopped = run_result(state_of(*FIRST, RunEnded(EndReason.STOPPED, "stopped by the user")))
    assert ended_words(stopped) == "stopped by the user, after 1 candidate"
    assert ended_words(run_result(state_of(*FIRST))) == ""


def test_two_that_are_each_faster_than_the_other_are_no_proof():
    second = (*admitted(2), *admitted(3), timed(2, MEASURE, "c0003", Outcome.FASTER, 1.2))
    assert run_result(state_of(*FIRST, *second, timed(3, MEASURE, "c0002", Outcome.FASTER, 1.3))).champion is None


def test_a_champion_that_confirms_as_no_faster_is_none():
    state = state_of(*FIRST, *admitted(2), timed(2, CONFIRM, "first", Outcome.TIE, 1.01))
    assert run_result(state).champion is None


@pytest.mark.parametrize(
    ("eager", "compiled", "kept"),
    [
        ((Outcome.FASTER, 1.2), (Outcome.FASTER, 1.1), ""),
        ((Outcome.SLOWER, 0.82), None, "PyTorch eager"),
        ((Outcome.UNCLEAR, 1.01), None, "PyTorch eager"),
        ((Outcome.FASTER, 1.2), (Outcome.TIE, 1.0), "torch.compile"),
        ((Outcome.SLOWER, 0.9), (Outcome.SLOWER, 0.8), "torch.compile"),
    ],
)
def test_pytorch_is_kept_where_the_champion_is_not_faster_than_it(eager, compiled, kept):
    crowned = timed(2, CONFIRM, "first", Outcome.FASTER, 1.3)
    beside = tuple(
        Comparison(name, met[0], met[1], met[1] - 0.01, met[1] + 0.01, 0.9, 8, 3)
        for name, met in (("eager", eager), ("compile", compiled))
        if met
    )
    measured = crowned.outcome.measurement
    measured = replace(measured, comparisons=(*measured.comparisons, *beside))
    crowned = replace(crowned, outcome=replace(crowned.outcome, measurement=measured))
    result = run_result(state_of(*FIRST, *admitted(2), crowned))
    assert result.champion == "c0002"
    assert kept_instead(result) == kept


def test_times_are_told_beside_those_of_pytorch_that_there_are():
    shape = ShapeResult("16x16384", 7.04, 7.0, 7.1, 9.925, None)
    assert times_words(shape, Clock.MEASURED) == "16x16384 7.0 µs measured, PyTorch eager 9.9 µs"
    assert times_words(replace(shape, eager_us=None), Clock.MODELLED) == "16x16384 7.0 µs modelled"


def test_a_hint_gained_where_its_candidate_beats_its_parent_on_the_same_rung():
    parent = (
        *admitted(2),
        timed(2, SCREEN, "first", Outcome.FASTER, 1.1),
        timed(2, MEASURE, "first", Outcome.FASTER, 1.5),
    )
    child = admitted(3, parent=2, hint="more_rows")
    done = replace(timed(3, SCREEN, "first", Outcome.FASTER, 1.3), decision=Decision.PRUNE)
    assert hint_outcomes(state_of(*FIRST, *parent, *child, done)) == (("more_rows", True),)
    worse = replace(done, score=1.05)
    assert hint_outcomes(state_of(*FIRST, *parent, *child, worse)) == (("more_rows", False),)


def test_a_hint_is_not_judged_by_scores_of_two_rungs():
    parent = (*admitted(2), timed(2, SCREEN, "first", Outcome.FASTER, 1.1))
    child = admitted(3, parent=2, hint="more_rows")
    done = replace(timed(3, MEASURE, "first", Outcome.FASTER, 1.3), decision=Decision.PRUNE)
    assert hint_outcomes(state_of(*FIRST, *parent, *child, done)) == (("more_rows", False),)
