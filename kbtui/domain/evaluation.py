"""What the engine asks of the evaluation plane, and what it gets back."""

from dataclasses import dataclass, field

from kbtui.domain.candidate import ArtifactRef, Attachment
from kbtui.domain.measurement import Measurement
from kbtui.domain.profile import Diagnosis, KernelResources, Profile
from kbtui.domain.rung import Rung
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
