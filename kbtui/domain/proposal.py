"""What a generator is given when it is asked for candidates."""

from dataclasses import dataclass
from enum import StrEnum

from kbtui.domain.candidate import Attachment, Candidate
from kbtui.domain.device import DeviceSpec
from kbtui.domain.problem import Problem
from kbtui.domain.profile import Diagnosis


class Space(StrEnum):
    """The kinds of advice a hint can give, coarse to fine."""

    ALGORITHM = "algorithm"
    TILING = "tiling"
    MEMORY = "memory_layout"
    PIPELINING = "pipelining"
    LAUNCH = "launch"
    PRECISION = "precision"


@dataclass(frozen=True, slots=True)
class Hint:
    """One piece of expert advice.

    Attributes:
        id: stable name, e.g. ``several_rows_a_program``.
        advice: what to do, one or two sentences.
        families: families it applies to; empty is all.
        answers: bottlenecks it answers (Bottleneck values).
        operators: playbook entries and rewrites that carry it out, the likeliest to help first; may be empty.
        why: what it does for the kernel, in terms of the hardware.
        cost: what it costs or when it backfires.
        source: the paper, manual or measurement it comes from.
        since_arch: the first compute capability it applies to, 90 for 9.0; 0 is any.
    """

    id: str
    space: Space
    advice: str
    families: tuple[str, ...]
    answers: tuple[str, ...]
    operators: tuple[str, ...]
    why: str = ""
    cost: str = ""
    source: str = ""
    since_arch: int = 0


@dataclass(frozen=True, slots=True)
class Sibling:
    """What was tried before and how it ended, in one line."""

    candidate: str
    summary: str
    outcome: str
    ratio: float | None


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a generator's last answer cost: language-model tokens, and what no candidate came of, with the reasons.

    ``exhausted``: an empty answer means that there is nothing more to say about that parent.
    """

    tokens: int = 0
    attachments: tuple[Attachment, ...] = ()
    notes: tuple[str, ...] = ()
    exhausted: bool = True


class Phase(StrEnum):
    """COARSE covers algorithm x tiling x layout; NARROW refines what was promoted."""

    COARSE = "coarse"
    NARROW = "narrow"


@dataclass(frozen=True, slots=True)
class ProposalRequest:
    """Everything a generator may read. ``seen`` are SHA-256 of sources already admitted: propose none of them."""

    problem: Problem
    family: str | None
    device: DeviceSpec
    parent: Candidate | None
    parent_source: str | None
    diagnosis: Diagnosis | None
    hints: tuple[Hint, ...]
    siblings: tuple[Sibling, ...]
    seen: frozenset[str]
    phase: Phase
    limit: int
    seed: int
    user_hints: tuple[str, ...] = ()
