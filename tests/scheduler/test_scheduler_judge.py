"""Promote or prune, case by case."""

import pytest

from kbtui.domain.evaluation import RungOutcome
from kbtui.domain.event import (
    Decision,
    RungCompleted,
)
from kbtui.domain.measurement import Clock, Outcome
from kbtui.domain.rung import COMPILE, CONFIRM, MEASURE, PROFILE, SCREEN
from kbtui.domain.verdict import Proof, Reason, rejected, unverified
from kbtui.scheduler.judge import judge
from tests.fakes.decided import admitted, against, answered, state_with, timed


def incumbent_at(rung: int, score: float = 1.0) -> RungCompleted:
    return RungCompleted("c0001", rung, timed(), Decision.PROMOTE, "", score, True)


@pytest.mark.parametrize("rung", [COMPILE, SCREEN, MEASURE, PROFILE, CONFIRM])
def test_a_rejected_candidate_is_rejected_on_every_rung_and_named(rung: int) -> None:
    state = state_with(admitted(1))
    wrong = rejected(Reason.WRONG_VALUES, 1, Proof.GPU, "relative L2 error 0.34, limit 1e-6")
    judged = judge(state, "c0001", rung, RungOutcome(wrong, 0.0, 0.0))
    assert judged.decision is Decision.REJECT
    assert "0.34" in judged.reason
    assert not judged.new_incumbent


@pytest.mark.parametrize("rung", [COMPILE, SCREEN, CONFIRM])
def test_our_own_fault_sets_a_candidate_aside_and_never_rejects_it(rung: int) -> None:
    ours = unverified(Reason.HARNESS_FAILED, 1, Proof.GPU, "the referee died")
    judged = judge(state_with(admitted(1)), "c0001", rung, RungOutcome(ours, 0.0, 0.0))
    assert judged.decision is Decision.SET_ASIDE


def test_the_first_to_be_timed_becomes_incumbent_with_score_one() -> None:
    judged = judge(state_with(admitted(1)), "c0001", SCREEN, timed())
    assert (judged.decision, judged.score, judged.new_incumbent) == (Decision.PROMOTE, 1.0, True)


CASES = [
    (SCREEN, 1.10, Outcome.FASTER, Decision.PROMOTE, True),
    (SCREEN, 1.00, Outcome.TIE, Decision.PROMOTE, False),
    (SCREEN, 0.80, Outcome.SLOWER, Decision.PROMOTE, False),
    (SCREEN, 0.50, Outcome.SLOWER, Decision.PRUNE, False),
    (MEASURE, 1.05, Outcome.FASTER, Decision.PROMOTE, True),
    (MEASURE, 0.95, Outcome.SLOWER, Decision.PROMOTE, False),
    (MEASURE, 0.80, Outcome.SLOWER, Decision.PRUNE, False),
    (PROFILE, 1.02, Outcome.FASTER, Decision.PROMOTE, True),
    (PROFILE, 1.00, Outcome.TIE, Decision.PRUNE, False),
    (PROFILE, 1.02, Outcome.UNCLEAR, Decision.PRUNE, False),
]


@pytest.mark.parametrize(("rung", "ratio", "outcome", "decision", "leads"), CASES)
def test_a_new_structure_is_judged_by_its_ratio(
    rung: int, ratio: float, outcome: Outcome, decision: Decision, leads: bool
) -> None:
    state = state_with(admitted(1), incumbent_at(rung), *answered(admitted(2, "online", "playbook")))
    judged = judge(state, "c0002", rung, timed(against("c0001", ratio, outcome)))
    assert (judged.decision, judged.new_incumbent) == (decision, leads)
    assert "c0001" in judged.reason


def test_a_modelled_reason_claims_neither_an_interval_nor_certainty() -> None:
    state = state_with(admitted(1), incumbent_at(MEASURE), *answered(admitted(2, "online", "playbook")))
    outcome = timed(against("c0001", 1.342, Outcome.FASTER), clock=Clock.MODELLED)
    assert judge(state, "c0002", MEASURE, outcome).reason == "+34.2 % over c0001 (modelled)"


def test_a_structure_that_had_its_refinements_gets_no_slack() -> None:
    drafts = [admitted(n, "online", "playbook") for n in range(2, 10)]
    done = [RungCompleted(d.candidate.id, SCREEN, timed(), Decision.PRUNE, "", 0.5, False) for d in drafts[:-1]]
    state = state_with(admitted(1), incumbent_at(SCREEN), *answered(*drafts), *done)
    judged = judge(state, "c0009", SCREEN, timed(against("c0001", 0.80, Outcome.SLOWER)))
    assert judged.decision is Decision.PRUNE


@pytest.mark.parametrize(("ratio", "decision"), [(0.62, Decision.PROMOTE), (0.55, Decision.PRUNE)])
def test_who_trails_on_the_screens_shape_goes_on_where_its_structure_leads_on_all(
    ratio: float, decision: Decision
) -> None:
    """A rival is ahead on the one shape that the screen times; all shapes say that the structure is the better one."""
    old = [admitted(n, "tiles", "playbook") for n in range(3, 10)]
    screened = [RungCompleted(d.candidate.id, SCREEN, timed(), Decision.PRUNE, "", 1.2, False) for d in old]
    state = state_with(
        admitted(1), *answered(admitted(2, "split", "playbook")), *answered(*old, admitted(10, "tiles", "playbook")),
        RungCompleted("c0002", SCREEN, timed(), Decision.PROMOTE, "", 2.0, True), *screened,
        RungCompleted("c0003", MEASURE, timed(), Decision.PROMOTE, "", 1.5, True),
    )  # fmt: skip
    judged = judge(state, "c0010", SCREEN, timed(against("c0002", ratio, Outcome.SLOWER)))
    assert judged.decision is decision
    assert ("tiles keeps 1.25 of its speed here" in judged.reason) is (decision is Decision.PROMOTE)


def test_scores_chain_through_the_incumbent() -> None:
    state = state_with(admitted(1), incumbent_at(SCREEN, 1.2), *answered(admitted(2, "online", "playbook")))
    judged = judge(state, "c0002", SCREEN, timed(against("c0001", 1.5, Outcome.FASTER)))
    assert judged.score == pytest.approx(1.8)


def test_an_unstable_measurement_never_makes_an_incumbent() -> None:
    state = state_with(admitted(1), incumbent_at(SCREEN), *answered(admitted(2, "online", "playbook")))
    fast = timed(against("c0001", 2.0, Outcome.FASTER), unstable="thermal throttling in 3 blocks")
    judged = judge(state, "c0002", SCREEN, fast)
    assert (judged.decision, judged.new_incumbent) == (Decision.PRUNE, False)


def test_a_champion_must_beat_the_first_kernel_in_fresh_processes() -> None:
    state = state_with(admitted(1), *answered(admitted(2, "online", "playbook")))
    unclear = timed(against("first", 1.01, Outcome.UNCLEAR))
    assert judge(state, "c0002", CONFIRM, unclear).decision is Decision.PRUNE
    clear = timed(against("first", 1.3, Outcome.FASTER))
    judged = judge(state, "c0002", CONFIRM, clear)
    assert (judged.decision, judged.score) == (Decision.CROWN, 1.3)


def test_a_second_champion_must_beat_the_first_champion() -> None:
    crown = RungCompleted("c0002", CONFIRM, timed(), Decision.CROWN, "", 1.3, True)
    state = state_with(
        admitted(1), *answered(admitted(2, "online", "playbook"), admitted(3, "split", "playbook")), crown
    )
    tie = timed(against("first", 1.31, Outcome.FASTER), against("c0002", 1.005, Outcome.TIE))
    assert judge(state, "c0003", CONFIRM, tie).decision is Decision.PRUNE
    better = timed(against("first", 1.4, Outcome.FASTER), against("c0002", 1.07, Outcome.FASTER))
    assert judge(state, "c0003", CONFIRM, better).decision is Decision.CROWN


@pytest.mark.parametrize(
    ("ratio", "outcome", "decision"),
    [
        (1.006, Outcome.UNCLEAR, Decision.PROMOTE),
        (1.001, Outcome.UNCLEAR, Decision.PRUNE),
        (0.997, Outcome.UNCLEAR, Decision.PRUNE),
        (1.001, Outcome.TIE, Decision.PRUNE),
    ],
)
def test_who_is_ahead_though_not_surely_stays_in_the_race_and_leads_nobody(
    ratio: float, outcome: Outcome, decision: Decision
) -> None:
    held = RungCompleted("c0001", MEASURE, timed(), Decision.PROMOTE, "", 1.0, True)
    profiled = RungCompleted("c0002", PROFILE, timed(), Decision.PROMOTE, "", 1.0, True)
    drafts = answered(admitted(2, "a", "playbook"), admitted(3, "a", "playbook"))
    state = state_with(admitted(1), *drafts, held, profiled)
    judged = judge(state, "c0003", MEASURE, timed(against("c0001", ratio, outcome)))
    assert judged.decision is decision
    assert not judged.new_incumbent
