"""What the engine asks of the evaluation plane, and what it gets back."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kbtui.domain.candidate import ArtifactRef, Attachment
from kbtui.domain.measurement import Comparison, Measurement
from kbtui.domain.profile import Diagnosis, KernelResources, Profile
from kbtui.domain.rung import CONFIRM, Rung
from kbtui.domain.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Opponent:
    """The candidate an evaluation is compared with."""

    id: str
    source: str


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """One candidate at one rung. ``passed_stage`` is the gate stage it already holds a verdict for (-1: none).

    ``incumbent`` is the best on that rung so far; ``first`` the problem's first verified kernel. ``baselines`` are
    those to meet at a confirmation, of those that could be timed; None: all of them.
    """

    candidate: str
    source: str
    rung: Rung
    seed: int
    passed_stage: int
    incumbent: Opponent | None
    first: Opponent | None
    champion: Opponent | None = None
    baselines: tuple[str, ...] | None = None

    @property
    def to_beat(self) -> dict[str, Opponent]:
        """By name, whom it must be faster than to win: the incumbent, and at a confirmation the first kernel too."""
        named = {self.incumbent.id: self.incumbent} if self.incumbent else {}
        if self.first and (self.rung.index == CONFIRM or not named) and self.first.id not in named:
            named["first"] = self.first
        return named

    def with_first(self, found: Sequence[Comparison]) -> tuple[Comparison, ...]:
        """What was found, the first kernel by that name too where it is the incumbent."""
        if self.first is None or self.incumbent is None or self.first.id != self.incumbent.id:
            return tuple(found)
        return (*found, *(replace(c, against="first") for c in found if c.against == self.first.id))


@dataclass(frozen=True, slots=True)
class RungOutcome:
    """Everything one evaluation found. ``gpu_s`` is device time held, ``wall_s`` wall time, in seconds."""

    verdict: Verdict
    gpu_s: float
    wall_s: float
    resources: tuple[KernelResources, ...] = ()
    bound_us: float | None = None
    measurement: Measurement | None = None
    profile: Profile | None = None
    diagnosis: Diagnosis | None = None
    artifacts: tuple[ArtifactRef, ...] = ()


def first_share(outcome: RungOutcome, process_pairs: int) -> float:
    """The part of its time that it would have taken with so many process pairs, had there been no further ones."""
    met = outcome.measurement.comparisons if outcome.measurement else ()
    played = max((c.n_processes for c in met), default=0)
    return min(1.0, process_pairs / played) if played and process_pairs else 1.0


@dataclass(frozen=True, slots=True)
class Evaluated:
    """An outcome with the bytes still to be stored; the engine turns attachments into ``artifacts``."""

    outcome: RungOutcome
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a problem is compared with, by its name in ``evaluation.baselines``; ``error`` where it could not be had."""

    name: str
    measurement: Measurement | None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class ProblemReport:
    """What opening a problem on a device found: family by tracing, PyTorch's times (none on a model)."""

    family: str | None
    baselines: tuple[Baseline, ...] = ()
    sandbox: tuple[str, ...] = field(default=())
    gpu_s: float = 0.0
