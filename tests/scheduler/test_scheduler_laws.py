"""Laws of whole searches: on planted landscapes where kernels are wrong, unstable and lost at random."""

import random
from dataclasses import dataclass, replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.landscapes import FIRST, Grid, Landscape, LandscapeDevice
from kbtui.domain.codec import envelope_from_plain, envelope_to_plain
from kbtui.domain.evaluation import Evaluated, EvaluationRequest
from kbtui.domain.event import Budget, CandidateAdmitted, Decision, Envelope, ProposalsMade, RunEnded, RungCompleted
from kbtui.domain.rung import COMPILE, CONFIRM, DEFAULT_LADDER, MEASURE, PROFILE, SCREEN
from kbtui.domain.verdict import Proof, Reason, VerdictKind, rejected, unverified
from kbtui.engine.engine import Engine
from kbtui.engine.memory_ledger import MemoryLedger
from kbtui.engine.meter import Meter
from kbtui.scheduler.actions import Action, AdmitFirst, Evaluate, Finish, Propose
from kbtui.scheduler.budget import within_share
from kbtui.scheduler.confirm import confirm_cost_s
from kbtui.scheduler.judge import judge
from kbtui.scheduler.policy import DEFAULT_POLICY
from kbtui.scheduler.queue import next_action
from kbtui.scheduler.state import RunState
from tests.fakes.search import PROBLEM, started

SEEDS = range(6)
GOOD = (Decision.PROMOTE, Decision.CROWN)


@dataclass
class RoughDevice(LandscapeDevice):
    """One evaluation in ten is wrong, one in twenty is lost through a fault of ours, one in twenty is unstable."""

    def evaluate(self, request: EvaluationRequest, on_sample: object) -> Evaluated:
        evaluated = super().evaluate(request, on_sample)
        fate = random.Random(f"{request.seed}/{request.source}/{request.rung.index}/fate").random()
        outcome, stage = evaluated.outcome, request.rung.gate_stage
        if request.source == FIRST or fate > 0.2:
            return evaluated
        if fate < 0.1:
            wrong = rejected(Reason.WRONG_VALUES, stage, Proof.GPU, "relative L2 error 0.34")
            return Evaluated(replace(outcome, verdict=wrong))
        if fate < 0.15:
            return Evaluated(replace(outcome, verdict=unverified(Reason.HARNESS_FAILED, stage, Proof.GPU, "lost")))
        unstable = replace(outcome.measurement, unstable="throttled") if outcome.measurement else None
        return Evaluated(replace(outcome, measurement=unstable))


@cache
def log_of(seed: int) -> tuple[Envelope, ...]:
    """The whole story of a rough search of four minutes."""
    device, ledger = RoughDevice(Landscape.drawn(seed)), MemoryLedger()
    ledger.append(replace(started(Budget(wall_s=240.0)), seed=seed), 0.0, 0.0)
    meter = Meter(ledger.spent(), now_s=lambda: device.now_s)
    problem = replace(PROBLEM, kernel_source=FIRST)
    generators = {"playbook": Grid()}
    Engine(problem, ledger, device, generators, lambda s, a: (), meter, lambda e, s: None).run()
    return tuple(ledger.log)


def folded(log: tuple[Envelope, ...]) -> RunState:
    state = RunState()
    for envelope in log:
        state.apply(envelope)
    return state


def action_after(log: tuple[Envelope, ...]) -> Action:
    return next_action(folded(log), log[-1].wall_s, log[-1].gpu_s, has_first=True)


def completions(seed: int) -> list[tuple[RunState, RungCompleted]]:
    """Every completed rung with the state before it."""
    log = log_of(seed)
    return [(folded(log[:n]), e.event) for n, e in enumerate(log) if isinstance(e.event, RungCompleted)]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_searches_meet_every_fate(seed: int) -> None:
    decisions = {e.event.decision for e in log_of(seed) if isinstance(e.event, RungCompleted)}
    assert decisions == set(Decision)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_rung_of_a_candidate_is_ever_evaluated_twice(seed: int) -> None:
    done = [(e.event.candidate, e.event.rung) for e in log_of(seed) if isinstance(e.event, RungCompleted)]
    assert len(done) == len(set(done))


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_that_is_not_verified_is_promoted_or_leads_or_is_evaluated_again(seed: int) -> None:
    ended: set[str] = set()
    for _, event in completions(seed):
        assert event.candidate not in ended
        if not event.outcome.verdict.ok:
            assert event.decision in (Decision.REJECT, Decision.SET_ASIDE)
            assert not event.new_incumbent
            ended.add(event.candidate)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_rung_is_reached_by_promotion_or_by_its_parents_and_confirmed_only_by_who_may_lead(seed: int) -> None:
    for before, event in completions(seed):
        tried = before.tried[event.candidate]
        if event.rung == CONFIRM:
            assert MEASURE in tried.results or before.champion is None
        elif event.rung > COMPILE:
            assert tried.waiting_at == event.rung
            assert tried.last is not None
            assert tried.last.decision in GOOD
            assert event.rung in (tried.last.rung + 1, tried.entry_rung)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_dear_rungs_never_take_more_than_their_share_allows(seed: int) -> None:
    """A profile begins within its share; so does a confirmation in mid-run. The end confirms the best all the same."""
    for before, event in completions(seed):
        if event.rung == PROFILE:
            assert within_share(before, PROFILE)
    log = log_of(seed)
    confirmed = [n for n, e in enumerate(log) if isinstance(e.event, RungCompleted) and e.event.rung == CONFIRM]
    limit_s = log_of(seed)[-1].wall_s
    for n in confirmed:
        before = folded(log[:n])
        cost_s = confirm_cost_s(before, DEFAULT_POLICY)
        assert within_share(before, CONFIRM, cost_s) or before.wall_s >= limit_s - 3 * cost_s


@pytest.mark.parametrize("seed", SEEDS)
def test_who_enters_above_the_screen_does_so_within_that_rungs_share(seed: int) -> None:
    log = log_of(seed)
    for n, envelope in enumerate(log):
        if isinstance(envelope.event, CandidateAdmitted) and envelope.event.entry_rung > SCREEN:
            before = folded(log[:n])
            assert within_share(before, envelope.event.entry_rung)
            parent = before.tried[envelope.event.candidate.parents[0]]
            assert any(r.decision in GOOD and r.rung + 1 >= envelope.event.entry_rung for r in parent.results.values())


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_from_any_prefix_the_recorded_events_give_the_same_state_and_the_same_next_action(data: st.DataObject) -> None:
    log = log_of(data.draw(st.sampled_from(SEEDS)))
    n = data.draw(st.integers(1, len(log) - 1))
    stored = tuple(envelope_from_plain(envelope_to_plain(e)) for e in log[:n])
    assert folded(stored) == folded(log[:n])
    assert action_after(stored) == action_after(log[:n])


@pytest.mark.parametrize("seed", SEEDS)
def test_from_every_prefix_the_next_action_is_what_was_done_next(seed: int) -> None:
    log = log_of(seed)
    within_an_answer = False
    for n in range(2, len(log)):  # the problem is opened first, whatever the scheduler says
        if within_an_answer:
            within_an_answer = not isinstance(log[n].event, ProposalsMade)
            continue
        action = action_after(log[:n])
        match log[n].event:
            case RungCompleted(candidate=candidate, rung=rung):
                assert action == Evaluate(candidate, rung)
            case CandidateAdmitted(candidate=candidate) if candidate.origin.generator == "seed":
                assert action == AdmitFirst()
            case CandidateAdmitted():
                assert isinstance(action, Propose)
                within_an_answer = True
            case ProposalsMade(generator=generator, parent=parent):
                assert isinstance(action, Propose)
                assert (action.generator, action.parent) == (generator, parent)
            case RunEnded(reason=reason, detail=detail):
                assert action == Finish(reason, detail)
            case other:
                raise AssertionError(f"nothing else is expected here: {other}")


@settings(deadline=None)
@given(st.data())
def test_whatever_a_rung_finds_only_the_verified_are_promoted(data: st.DataObject) -> None:
    log = log_of(data.draw(st.sampled_from(SEEDS)))
    done = [(n, e.event) for n, e in enumerate(log) if isinstance(e.event, RungCompleted)]
    n, event = data.draw(st.sampled_from(done))
    rung = data.draw(st.sampled_from([r.index for r in DEFAULT_LADDER]))
    kind = data.draw(st.sampled_from([VerdictKind.REJECTED, VerdictKind.UNVERIFIED]))
    fail = rejected if kind is VerdictKind.REJECTED else unverified
    verdict = fail(Reason.WRONG_VALUES, DEFAULT_LADDER[rung].gate_stage, Proof.GPU, "no")
    judged = judge(folded(log[:n]), event.candidate, rung, replace(event.outcome, verdict=verdict))
    assert judged.decision in (Decision.REJECT, Decision.SET_ASIDE)
    assert not judged.new_incumbent
