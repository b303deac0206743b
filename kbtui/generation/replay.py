"""A generator on a recorded pool: it proposes what the generator of that name made of this parent. Pure."""

import random
from collections.abc import Callable

from kbtui.domain.candidate import Proposal
from kbtui.domain.pool import Pool, PoolCandidate
from kbtui.domain.proposal import ProposalRequest
from kbtui.engine.ports import Generator
from kbtui.errors import UsageError

#: Recorded answers keep their order up to this many places: a generator's own order says what it thought best, and
#: runs of different seeds should still differ.
JITTER_PLACES = 6.0


class Recorded:
    """``name``'s recorded children of the parent asked about, the drafts where there is none.

    Each question costs ``ask_wall_s``, which ``owe`` is told.
    """

    def __init__(self, name: str, pool: Pool, owe: Callable[[float], None]) -> None:
        self.name = name
        self._pool = pool
        self._owe = owe
        self._ask_wall_s = dict(pool.header.ask_wall_s).get(name, 0.0)

    def propose(self, request: ProposalRequest) -> tuple[Proposal, ...]:
        self._owe(self._ask_wall_s)
        parent = request.parent.source_sha if request.parent else None
        made = [c for c in self._pool.candidates if c.parent == parent and c.origin.generator == self.name]
        ranked = sorted(enumerate(made), key=lambda at: at[0] + _jitter(request.seed, at[1]))
        fresh = [c for _, c in ranked if c.source_sha not in request.seen]
        return tuple(Proposal(c.source, c.origin, c.structure, c.summary, c.notes) for c in fresh[: request.limit])


def _jitter(seed: int, candidate: PoolCandidate) -> float:
    return random.Random(f"{seed}/{candidate.source_sha}").uniform(0.0, JITTER_PLACES)


def recorded_generators(names: tuple[str, ...], pool: Pool, owe: Callable[[float], None]) -> dict[str, Generator]:
    """By name, in the order named. Raises UsageError where the pool holds nothing by any of them."""
    if not set(names) & set(pool.generators):
        has = ", ".join(pool.generators) or "no generator"
        raise UsageError(f"the pool holds nothing by {', '.join(names)}", f"it was made by {has}")
    return {name: Recorded(name, pool, owe) for name in names}
