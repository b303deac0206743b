"""From a proposal, the problem or a person to a candidate and what its commit says. Pure."""

import json
from dataclasses import replace

from kbtui.domain.candidate import Candidate, Origin, Proposal, candidate_id, source_sha
from kbtui.domain.event import CommandAccepted
from kbtui.domain.problem import Problem


def first_kernel(problem: Problem) -> Proposal:
    assert problem.kernel_source is not None
    return Proposal(problem.kernel_source, Origin("seed", "first_kernel"), "first", "the problem's first kernel")


def submission(command: CommandAccepted, structure: str) -> Proposal:
    """A kernel a person or an agent handed in, of the structure that its fingerprint tells."""
    return Proposal(command.argument, Origin("person", "submit"), structure, command.note or "submitted by hand")


def candidate_of(number: int, proposal: Proposal, parent: str | None) -> Candidate:
    """The candidate as it is admitted. Only its source may hold what UTF-8 cannot: the gate refuses that."""
    origin = proposal.origin
    return Candidate(
        id=candidate_id(number),
        source_sha=source_sha(proposal.source),
        parents=(parent,) if parent else (),
        origin=replace(origin, operator=_utf8(origin.operator), hint=_utf8(origin.hint) if origin.hint else None),
        structure=_utf8(proposal.structure),
        summary=_utf8(proposal.summary),
        notes=tuple(_utf8(note) for note in proposal.notes),
    )


def _utf8(text: str) -> str:
    """The text with every lone surrogate, half a character that a model was cut off in, as U+FFFD."""
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)


def trailers(candidate: Candidate, run: str) -> tuple[tuple[str, str], ...]:
    """What a program reads off a candidate's commit: identity, operator, hint, parameters."""
    origin = candidate.origin
    pairs = [
        ("Candidate", candidate.id),
        ("Run", run),
        ("Generator", origin.generator),
        ("Operator", origin.operator),
        ("Structure", candidate.structure),
        ("Source-SHA256", candidate.source_sha),
    ]
    if origin.hint:
        pairs.append(("Hint", origin.hint))
    if origin.params:
        pairs.append(("Params", json.dumps(dict(origin.params))))
    pairs += [("Note", " ".join(note.split())) for note in candidate.notes]
    return tuple(pairs)
