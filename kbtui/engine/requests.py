"""From a run's state to what the planes are asked: evaluation and proposal requests. Pure."""

from collections.abc import Callable

from kbtui.domain.evaluation import EvaluationRequest, Opponent
from kbtui.domain.problem import Problem
from kbtui.domain.profile import Diagnosis
from kbtui.domain.proposal import Hint, ProposalRequest, Sibling
from kbtui.domain.rung import CONFIRM, Rung
from kbtui.scheduler.actions import Evaluate, Propose
from kbtui.scheduler.judge import opponent_at
from kbtui.scheduler.state import RunState, Tried

SourceOf = Callable[[str], str]
MAX_SIBLINGS = 12


def evaluation_request(
    state: RunState, action: Evaluate, source_of: SourceOf, rung: Rung | None = None
) -> EvaluationRequest:
    """``rung``: as it is to be climbed now; None: as the run's ladder has it."""
    assert state.started is not None
    tried = state.tried[action.candidate]

    def opponent(candidate: str | None) -> Opponent | None:
        return Opponent(candidate, source_of(candidate)) if candidate and candidate != action.candidate else None

    return EvaluationRequest(
        candidate=action.candidate,
        source=source_of(action.candidate),
        rung=rung or state.started.ladder[action.rung],
        seed=state.started.seed,
        passed_stage=tried.passed_stage,
        incumbent=opponent(opponent_at(state, action.rung)),
        first=opponent(state.first),
        champion=opponent(state.champion) if action.rung == CONFIRM else None,
    )


def diagnosis_of(state: RunState, candidate: str) -> Diagnosis | None:
    """The candidate's latest diagnosis, else its nearest ancestor's."""
    tried = state.tried[candidate]
    for result in sorted(tried.results.values(), key=lambda r: -r.rung):
        if result.outcome.diagnosis is not None:
            return result.outcome.diagnosis
    parents = tried.candidate.parents
    return diagnosis_of(state, parents[0]) if parents else None


def sibling_of(tried: Tried) -> Sibling | None:
    """What became of a candidate in one line, None while it waits for its first result."""
    last = tried.last
    if last is None:
        return None
    return Sibling(tried.candidate.id, tried.candidate.summary, f"{last.decision}: {last.reason}", tried.score)


def siblings_of(state: RunState, parent: str | None) -> tuple[Sibling, ...]:
    """The latest candidates made from the same parent."""
    made = [t for t in state.tried.values() if (t.candidate.parents[:1] or (None,))[0] == parent]
    told = [s for t in made if (s := sibling_of(t))]
    return tuple(told[-MAX_SIBLINGS:])


def proposal_request(
    state: RunState, action: Propose, problem: Problem, source_of: SourceOf, hints: tuple[Hint, ...]
) -> ProposalRequest:
    """``hints`` are the ones chosen for this question."""
    assert state.started is not None
    parent = state.tried[action.parent] if action.parent else None
    family = problem.spec.family or (state.opened.report.family if state.opened else None)
    return ProposalRequest(
        problem=problem,
        family=family,
        device=state.started.device,
        parent=parent.candidate if parent else None,
        parent_source=source_of(parent.candidate.id) if parent else None,
        diagnosis=diagnosis_of(state, parent.candidate.id) if parent else None,
        hints=hints,
        siblings=siblings_of(state, action.parent),
        seen=frozenset(state.seen),
        phase=action.phase,
        limit=action.limit,
        seed=state.started.seed * 1_000_003 + len(state.asked),
        user_hints=tuple(state.user_hints),
    )
