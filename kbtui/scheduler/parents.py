"""Whom to ask for candidates, and about which parent: spend on what pays, and change the structure when it does not."""

from dataclasses import dataclass
from statistics import fmean

from kbtui.domain.proposal import Phase
from kbtui.domain.rung import MEASURE, PROFILE
from kbtui.domain.wording import counted
from kbtui.scheduler.actions import Propose
from kbtui.scheduler.policy import Policy
from kbtui.scheduler.state import RunState, Tried, Yield
from kbtui.scheduler.structures import best_of_each

#: A parent with counters says more to a generator that reads them.
_PROFILED_BONUS = 1.2


@dataclass(frozen=True, slots=True)
class _Option:
    generator: str
    parent: str | None
    weight: float
    why: str


def reads_diagnoses(generator: str) -> bool:
    """Whether a generator's answer about a parent depends on what bounds it: the playbook walks its grid instead."""
    return generator != "playbook"


def choose_proposal(state: RunState, limit: int, policy: Policy, wall_s: float = 0.0) -> Propose | None:
    """The next question to a generator for at most ``limit`` candidates, or None when none may be asked now.

    Drafts of every structure come first (coarse). Then the pair of generator and parent with the most promise:
    what the generator gains in a second, times what the parent promises (S, see score.py), divided by how often its
    structure was asked about in vain.
    """
    assert state.started is not None
    generators = [g for g in state.started.generators if unavailable(state, g, wall_s, policy) is None]
    if "playbook" in generators and is_coarse(state):
        return Propose("playbook", None, Phase.COARSE, limit, "coarse: every structure before refining any")
    options = [option for generator in generators for option in _options(state, generator, policy)]
    if "playbook" in generators:
        options += _drafts_left(state, policy)
    best = max(options, key=lambda o: o.weight, default=None)
    if best is None:
        return None
    phase = Phase.NARROW if best.parent else Phase.COARSE
    return Propose(best.generator, best.parent, phase, min(limit, policy.refine_batch), best.why)


def _drafts_left(state: RunState, policy: Policy) -> list[_Option]:
    """The drafts beside the first of every structure, as one option at most.

    They promise what those that lead their structures do on average, less with every time they were asked for.
    """
    heads = [promised for _, promised in best_of_each(state, lambda _: True)]
    if ("playbook", None) in state.exhausted or not heads:
        return []
    gains, promised = gains_a_minute(state, "playbook"), fmean(heads)
    asked = sum(1 for _, a in state.asked if a.generator == "playbook" and a.parent is None)
    why = f"drafts that are left: {gains:.1f} gains a minute; structures promise {promised:.2f}× the incumbent"
    return [_Option("playbook", None, gains * promised**policy.sharpness / max(asked, 1), why)]


def is_coarse(state: RunState) -> bool:
    """Whether structures are still being drafted: until then nobody leads for long."""
    drafts = state.started is not None and "playbook" in state.started.generators
    return drafts and not state.all_drafted and ("playbook", None) not in state.exhausted


def unavailable(state: RunState, generator: str, wall_s: float, policy: Policy) -> str | None:
    """Why a generator is not asked now: its tokens are spent, or its last questions failed. None where it may be."""
    got = state.yields.get(generator, Yield())
    limit = state.budget.llm_tokens
    if limit is not None and got.tokens >= limit:
        return f"{generator} has used its {limit} tokens"
    failing = state.failing.get(generator)
    if failing is None:
        return None
    if failing.times >= policy.failures:
        return f"{generator} failed {failing.times} times running: {failing.why}"
    again_s = failing.since_s + min(policy.back_off_s * 2 ** (failing.times - 1), policy.longest_back_off_s)
    return f"{generator} is asked again in {again_s - wall_s:.0f} s: {failing.why}" if wall_s < again_s else None


def awaited(state: RunState, wall_s: float, policy: Policy) -> str | None:
    """Why the search should wait rather than end: a generator that failed, and may yet answer, in words."""
    assert state.started is not None
    for generator in state.started.generators:
        failing = state.failing.get(generator)
        if failing is not None and failing.times < policy.failures:
            return unavailable(state, generator, wall_s, policy)
    return None


def _options(state: RunState, generator: str, policy: Policy) -> list[_Option]:
    """The best parent of every structure that the generator has something left to say about."""
    gains = gains_a_minute(state, generator)
    heads = best_of_each(state, lambda t: (generator, t.candidate.id) not in state.exhausted)
    return [_option(state, generator, gains, parent, promised, policy) for parent, promised in heads]


def _option(state: RunState, generator: str, gains: float, parent: Tried, promised: float, policy: Policy) -> _Option:
    in_vain = asked_in_vain(state, parent.candidate.structure)
    asked = sum(1 for _, a in state.asked if a.generator == generator and a.parent == parent.candidate.id)
    told = _PROFILED_BONUS if PROFILE in parent.results and reads_diagnoses(generator) else 1.0
    weight = gains * promised**policy.sharpness * told / (1 + asked) / (1 + in_vain / policy.stagnation)
    why = (
        f"{generator} may gain {gains:.1f} a minute; parent promises {promised:.2f}× the incumbent; "
        f"{counted(in_vain, 'question')} about its structure in vain"
    )
    return _Option(generator, parent.candidate.id, weight, why)


def gains_a_minute(state: RunState, generator: str) -> float:
    """Chance that a mutation by this generator leads the measure rung, smoothed, over the minutes one costs.

    Drafts do not count: they are made once, and nobody else could have led before them. A generator that was never
    asked is given an even chance, so it soon gets one.
    """
    made = [t for t in state.tried.values() if t.candidate.origin.generator == generator and t.candidate.parents]
    gained = sum(any(r.new_incumbent and r.rung >= MEASURE for r in t.results.values()) for t in made)
    return 60.0 * (gained + 1) / (len(made) + 2) / _seconds_a_candidate(state, generator)


def _seconds_a_candidate(state: RunState, generator: str) -> float:
    """Asking and evaluating up to the measure rung, one second at least."""
    got = state.yields.get(generator, Yield())
    evaluated_s = sum(s.wall_s for rung, s in state.spend.items() if rung <= MEASURE)
    return max(got.wall_s / max(got.n_admitted, 1) + evaluated_s / max(len(state.tried), 1), 1.0)


def asked_in_vain(state: RunState, structure: str) -> int:
    """Questions about a structure's candidates since one of them last became an incumbent."""
    gained = state.gained_seq.get(structure, -1)
    return sum(
        1
        for seq, asked in state.asked
        if seq > gained and asked.parent is not None and state.tried[asked.parent].candidate.structure == structure
    )
