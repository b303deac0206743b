"""Whom to ask for candidates, and about which parent: spend on what pays, and change the structure when it does not."""

from dataclasses import dataclass

from kbtui.domain.proposal import Phase
from kbtui.domain.rung import PROFILE
from kbtui.scheduler.actions import Propose
from kbtui.scheduler.policy import Policy
from kbtui.scheduler.state import RunState, Tried, Yield
from kbtui.scheduler.structures import best_of_each


@dataclass(frozen=True, slots=True)
class _Option:
    generator: str
    parent: str | None
    weight: float
    why: str


def choose_proposal(state: RunState, limit: int, policy: Policy) -> Propose | None:
    """The next question to a generator for at most ``limit`` candidates, or None when every one is exhausted.

    Drafts of every structure come first (coarse). Then the pair of generator and parent with the most promise:
    the generator's yield, times the parent's speed, divided by how often its structure was asked about in vain.
    """
    assert state.started is not None
    generators = state.started.generators
    if "playbook" in generators and not state.all_drafted and ("playbook", None) not in state.exhausted:
        return Propose("playbook", None, Phase.COARSE, limit, "coarse: every structure before refining any")
    options = [
        _option(state, generator, parent, stands, policy)
        for generator in generators
        for parent, stands in best_of_each(state)
        if (generator, parent.candidate.id) not in state.exhausted
    ]
    if not options:
        return None
    best = max(options, key=lambda o: o.weight)
    return Propose(best.generator, best.parent, Phase.NARROW, limit, best.why)


def _option(state: RunState, generator: str, parent: Tried, stands: float, policy: Policy) -> _Option:
    in_vain = asked_in_vain(state, parent.candidate.structure)
    asked = sum(1 for _, a in state.asked if a.generator == generator and a.parent == parent.candidate.id)
    profiled = 1.2 if PROFILE in parent.results else 1.0
    pays = yield_rate(state.yields.get(generator, Yield()))
    weight = pays * stands**2 * profiled / (1 + asked) / (1 + in_vain / policy.stagnation)
    why = (
        f"{generator} pays {pays:.2f}, parent at {stands:.2f} of the incumbent, asked {asked} times, {in_vain} in vain"
    )
    return _Option(generator, parent.candidate.id, weight, why)


def yield_rate(got: Yield) -> float:
    """Promotions and incumbents a candidate of this generator has brought, smoothed so that the new get a chance."""
    return (got.n_promoted + 3 * got.n_incumbent + 2) / (got.n_admitted + 4)


def asked_in_vain(state: RunState, structure: str) -> int:
    """Questions about a structure's candidates since one of them last became an incumbent."""
    gained = state.gained_seq.get(structure, -1)
    return sum(
        1
        for seq, asked in state.asked
        if seq > gained and asked.parent is not None and state.tried[asked.parent].candidate.structure == structure
    )
