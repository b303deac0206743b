"""The rewrites generator: edits of the parent, ranked by its diagnosis and the chosen hints. Pure."""

import random
from collections.abc import Iterator

from kbtui.domain.candidate import Origin, Proposal, source_sha
from kbtui.domain.proposal import Hint, ProposalRequest, Sibling
from kbtui.generation.rewrites import REWRITES, Edit, Rewrite, Target
from kbtui.scheduler.fingerprint import same_structure

#: What a hint adds to a rewrite's rank beside the diagnosis's weights (which sum to about 1), the first hint most.
_HINT_WEIGHT = 0.6
#: What each sibling made by the same rewrite that was pruned or rejected takes off.
_FAILED_WEIGHT = 0.15
#: What each place further down the list takes off, and how many places the seed may move a rewrite.
_PLACE_WEIGHT, _JITTER = 0.01, 4


class Rewrites:
    """Proposes edits of ``request.parent_source``; nothing without one."""

    name = "rewrites"

    def propose(self, request: ProposalRequest) -> tuple[Proposal, ...]:
        """At most ``request.limit`` edits not seen before: the first of each rewrite by rank, then the second …"""
        if request.parent_source is None:
            return ()
        seen = set(request.seen)
        fresh: list[Proposal] = []
        for rewrite, edit in _in_turn(request):
            if len(fresh) >= request.limit:
                break
            sha = source_sha(edit.source)
            if sha not in seen:
                seen.add(sha)
                fresh.append(_proposal(rewrite, edit, request))
        return tuple(fresh)


def _in_turn(request: ProposalRequest) -> Iterator[tuple[Rewrite, Edit]]:
    source = request.parent_source or ""
    target = Target.of(request.device, request.problem.spec)
    rng = random.Random(request.seed)
    worth = {r.name: rank(r, request) - _PLACE_WEIGHT * (i + _JITTER * rng.random()) for i, r in enumerate(REWRITES)}
    ranked = sorted(REWRITES, key=lambda r: -worth[r.name])
    columns = [(rewrite, rewrite.each(source, target)) for rewrite in ranked]
    while columns:
        left = []
        for rewrite, edits in columns:
            edit = next(edits, None)
            if edit is not None:
                left.append((rewrite, edits))
                yield rewrite, edit
        columns = left


def rank(rewrite: Rewrite, request: ProposalRequest) -> float:
    """How much the diagnosis, the hints and the siblings' fate speak for a rewrite."""
    findings = request.diagnosis.findings if request.diagnosis is not None else ()
    diagnosed = sum(f.weight for f in findings if f.bottleneck in rewrite.answers)
    place = next((i for i, hint in enumerate(request.hints) if _follows(rewrite, hint)), None)
    hinted = _HINT_WEIGHT / (1 + place) if place is not None else 0.0
    asked = 1.0 if any(_mentions(text, rewrite) for text in request.user_hints) else 0.0
    failed = sum(_failed(sibling, rewrite) for sibling in request.siblings)
    return diagnosed + hinted + asked - _FAILED_WEIGHT * failed


def _follows(rewrite: Rewrite, hint: Hint) -> bool:
    return rewrite.name in hint.operators


def _mentions(text: str, rewrite: Rewrite) -> bool:
    lowered = text.lower()
    return rewrite.name in lowered or rewrite.name.replace("_", " ") in lowered


def _failed(sibling: Sibling, rewrite: Rewrite) -> bool:
    lost = sibling.outcome.startswith(("prune", "reject"))
    return lost and sibling.summary.startswith(f"{rewrite.name}: ")


def _proposal(rewrite: Rewrite, edit: Edit, request: ProposalRequest) -> Proposal:
    hint = next((h.id for h in request.hints if _follows(rewrite, h)), rewrite.hints[0] if rewrite.hints else None)
    structure = request.parent.structure if request.parent is not None else f"{request.family or 'kernel'}/first"
    if not same_structure(request.parent_source or "", edit.source):
        structure = f"{structure} + {rewrite.name}"
    origin = Origin("rewrites", rewrite.name, hint, edit.params)
    return Proposal(edit.source, origin, structure, f"{rewrite.name}: {edit.summary}")
