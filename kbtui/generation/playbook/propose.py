"""The playbook generator: every structure once, then the neighbourhood of what was promoted. Pure but for its data."""

import random
from collections.abc import Iterable, Iterator

from kbtui.domain.candidate import Origin, Proposal, source_sha
from kbtui.domain.proposal import Phase, ProposalRequest
from kbtui.generation.playbook.advice import Advice, advise
from kbtui.generation.playbook.advice_rules import RULES
from kbtui.generation.playbook.constants import Value, set_constants
from kbtui.generation.playbook.entry import Entry, load_entries

#: Words of a person's hint that are too common to single out a structure.
_COMMON_WORDS = frozenset({"row", "softmax", "matvec", "channel", "rms", "one", "k", "a", "the"})


class Playbook:
    """Proposes instantiations of expert structures for the request's family, coarse first."""

    name = "playbook"

    def propose(self, request: ProposalRequest) -> tuple[Proposal, ...]:
        """At most ``request.limit`` proposals, none of them seen before; empty once the grid is exhausted.

        In the narrow phase, and a parent of a known structure, its neighbours come first: one parameter one step away,
        then two. Otherwise every structure once, from parameters that suit the problem's sizes (``advice.py``), then
        steps away from those. A person's words lead the order, then hints that a diagnosis chose, then the sizes.
        """
        advice = _advice(request)
        entries = _ranked(load_entries(request.family), request, advice)
        rng = random.Random(request.seed)
        seen = set(request.seen)
        fresh: list[Proposal] = []
        for proposal in _all(entries, request, advice, rng):
            if len(fresh) >= request.limit:
                break
            sha = source_sha(proposal.source)
            if sha not in seen:
                seen.add(sha)
                fresh.append(proposal)
        return tuple(fresh)


def _advice(request: ProposalRequest) -> Advice:
    rule, n_dims = RULES.get(request.family or "", (None, 0))
    return advise(request.problem.spec, request.device, rule, n_dims)


def _all(entries: list[Entry], request: ProposalRequest, advice: Advice, rng: random.Random) -> Iterator[Proposal]:
    parent_entry = next((e for e in entries if request.parent and e.structure == request.parent.structure), None)
    if request.phase is Phase.NARROW and parent_entry is not None and request.parent_source is not None:
        yield from _around(parent_entry, request.parent_source, request, advice, rng)
    starts = [advice.start(entry) for entry in entries]
    for entry, start in zip(entries, starts, strict=True):
        yield _instance(entry, start, request)
    steps = [list(_steps(entry, start, advice, rng)) for entry, start in zip(entries, starts, strict=True)]
    for round_of_steps in _rounds(steps):
        for index, params in round_of_steps:
            yield _instance(entries[index], params, request)


def _around(
    entry: Entry, source: str, request: ProposalRequest, advice: Advice, rng: random.Random
) -> Iterator[Proposal]:
    """Neighbours made by editing the parent's own text, so that what a rewrite did to it is kept."""
    params = entry.params_of(source)
    if params is None:
        return
    for changed in _steps(entry, params, advice, rng):
        yield _proposal(entry, set_constants(source, changed), changed, request)


def _steps(entry: Entry, params: dict[str, Value], advice: Advice, rng: random.Random) -> Iterator[dict[str, Value]]:
    """Parameter sets around these, nearest first, without those the entry keeps out."""
    return (near for near in _nearest_first(entry, params, advice, rng) if entry.why_kept_out(near) is None)


def _nearest_first(
    entry: Entry, params: dict[str, Value], advice: Advice, rng: random.Random
) -> Iterator[dict[str, Value]]:
    """Parameter sets one step away in one parameter, then in two, then all values of one; each group shuffled.

    Moves that act on none of the problem's sizes come after all others.
    """

    def acting(moves: list[tuple[str, Value]]) -> list[tuple[str, Value]]:
        return [(name, value) for name, value in moves if advice.acts(entry, name, params[name], value)]

    adjacent = [(name, value) for name, values in entry.grid for value in _adjacent(values, params[name])]
    far = [(name, value) for name, values in entry.grid for value in values if value != params[name]]
    moves = acting(adjacent)
    rng.shuffle(moves)
    for move in moves:
        yield params | dict([move])
    pairs = [(a, b) for i, a in enumerate(moves) for b in moves[i + 1 :] if a[0] != b[0]]
    rng.shuffle(pairs)
    for pair in pairs:
        yield params | dict(pair)
    for group in (acting(far), far):
        rng.shuffle(group)
        for move in group:
            yield params | dict([move])


def _adjacent(values: tuple[Value, ...], current: Value) -> tuple[Value, ...]:
    """The values beside the current one; where it is off the grid, all of them."""
    if current not in values:
        return values
    at = values.index(current)
    return values[max(at - 1, 0) : at] + values[at + 1 : at + 2]


def _rounds(steps: list[list[dict[str, Value]]]) -> Iterator[list[tuple[int, dict[str, Value]]]]:
    """The first step of every entry, then the second of each, so that no structure is polished alone."""
    for number in range(max((len(s) for s in steps), default=0)):
        yield [(index, s[number]) for index, s in enumerate(steps) if number < len(s)]


def _ranked(entries: Iterable[Entry], request: ProposalRequest, advice: Advice) -> list[Entry]:
    """Entries that a person asked for first, then those of hints that answer a diagnosis, then as sizes advise.

    Without a diagnosis hints are in the order of their files, which says nothing: they only part what is equal.
    """
    advised = [op for hint in request.hints for op in hint.operators] + [h.id for h in request.hints]
    words = {word for text in request.user_hints for word in text.lower().replace("-", " ").split()}

    def place(entry: Entry) -> tuple[int, int, int, int]:
        asked = (set(entry.name.split("_")) - _COMMON_WORDS) & words
        names = (entry.name, *entry.hints)
        hinted = min((advised.index(n) for n in names if n in advised), default=len(advised))
        return (-len(asked), hinted if request.diagnosis else 0, advice.place(entry), hinted)

    return sorted(entries, key=place)


def _instance(entry: Entry, params: dict[str, Value], request: ProposalRequest) -> Proposal:
    return _proposal(entry, entry.instantiate(params, request.device, request.problem.spec), params, request)


def _proposal(entry: Entry, source: str, params: dict[str, Value], request: ProposalRequest) -> Proposal:
    chosen = [hint.id for hint in request.hints]
    followed = next((h for h in chosen if h in entry.hints), entry.hints[0] if entry.hints else None)
    origin = Origin("playbook", entry.name, followed, tuple((name, str(value)) for name, value in params.items()))
    return Proposal(source, origin, entry.structure, entry.summarise(params))
