"""One kernel source proposed for a problem, and where it came from."""

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """What made a candidate.

    Attributes:
        generator: ``seed``, ``playbook``, ``rewrites``, ``llm`` or ``person``.
        operator: the playbook entry, rewrite or model that made it, e.g. ``online_softmax`` or ``num_warps``.
        hint: id of the hint it answers, if one was chosen.
        params: what the operator was instantiated with, as text, e.g. ``(("BLOCK", "4096"), ("num_warps", "8"))``.
    """

    generator: str
    operator: str
    hint: str | None = None
    params: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """An immutable candidate; its source lives in git under ``source_sha`` (SHA-256 of the text).

    Attributes:
        id: ``c0001`` and on, in order of admission within a run.
        parents: ids of the candidates it was made from; none for a first draft, two for a crossover.
        structure: label of what the kernel does, told apart from its constants, e.g. ``softmax/online``.
        summary: one line a person reads, e.g. ``online softmax, 2 rows a program``.
        notes: what was mended or chosen on the way, one line each (the repair's list, a person's note).
    """

    id: str
    source_sha: str
    parents: tuple[str, ...]
    origin: Origin
    structure: str
    summary: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Proposal:
    """A source a generator offers, before it is admitted as a candidate."""

    source: str
    origin: Origin
    structure: str
    summary: str
    notes: tuple[str, ...] = ()
    attachments: "tuple[Attachment, ...]" = ()


@dataclass(frozen=True, slots=True)
class Attachment:
    """Bytes that belong to an event but not in git (samples, a prompt, a reply, an ncu report)."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True)
class ArtifactRef:
    """An attachment once stored: its name and the SHA-256 that names its file."""

    name: str
    sha256: str


def source_sha(source: str) -> str:
    """SHA-256 of the source text in hex: two candidates with one text are one candidate.

    A lone surrogate, which a model's reply may hold, is no reason to fail here: the gate says what is wrong with it.
    """
    return hashlib.sha256(source.encode(errors="surrogatepass")).hexdigest()


def candidate_id(number: int) -> str:
    return f"c{number:04d}"
