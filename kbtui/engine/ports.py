"""The seams of the engine: what it needs of a device, a generator and a ledger."""

from collections.abc import Callable, Iterable
from typing import Protocol, runtime_checkable

from kbtui.domain.candidate import Attachment, Proposal
from kbtui.domain.device import DeviceSpec
from kbtui.domain.evaluation import Evaluated, EvaluationRequest, ProblemReport
from kbtui.domain.event import CommandAccepted, Envelope, Event, Spent
from kbtui.domain.measurement import LiveSample
from kbtui.domain.problem import Problem
from kbtui.domain.proposal import ProposalRequest, Receipt
from kbtui.domain.vetting import Vetting

SampleSink = Callable[[LiveSample], None]


class Device(Protocol):
    """Evaluates candidates. All methods block; ``evaluate`` may run beside ``prefetch``'s background work."""

    spec: DeviceSpec

    def open(self, problem: Problem) -> ProblemReport:
        """Start workers, build inputs and references, time PyTorch.

        Raises UsageError (a reference that raises) and DeviceError (no such device).
        """
        ...

    def prefetch(self, source: str) -> None:
        """Begin compiling a source that will be asked for soon. Never blocks, never fails."""
        ...

    def evaluate(self, request: EvaluationRequest, on_sample: SampleSink) -> Evaluated:
        """Gate, measure and (where the rung says) profile. A candidate's fault or ours is a verdict, never a raise."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Vets(Protocol):
    """A device that can tell whether a problem's gate catches kernels that compute nothing."""

    def vet(self, problem: Problem, allclose: float | None = None) -> Vetting:
        """Blocks. What is wrong with the problem is in the answer; ``allclose`` judges as KernelBench does."""
        ...


class Generator(Protocol):
    """Proposes candidates. An empty answer means it has nothing (more) to say about this request."""

    name: str

    def propose(self, request: ProposalRequest) -> tuple[Proposal, ...]: ...


@runtime_checkable
class Stoppable(Protocol):
    """A generator whose answer may take long; ``stop`` ends it at once, with what it has. Called from any thread."""

    def stop(self) -> None: ...


@runtime_checkable
class Costly(Protocol):
    """A generator whose answers cost more than time. ``receipt`` is of the last answer, also where that failed."""

    def receipt(self) -> Receipt: ...


class Ledger(Protocol):
    """The durable record of one run, held open by one engine."""

    run: str

    def events(self) -> Iterable[Envelope]: ...

    def commit_candidate(
        self, number: int, source: str, parents: tuple[str, ...], subject: str, trailers: tuple[tuple[str, str], ...]
    ) -> str:
        """Write the candidate's commit (parents are commit ids) and return its id. Same input, same id."""
        ...

    def append(
        self,
        event: Event,
        wall_s: float,
        gpu_s: float,
        attachments: tuple[Attachment, ...] = (),
        best: str | None = None,
    ) -> Envelope:
        """Git first, then the index in one transaction. ``best``: commit whose kernel.py the ledger's tree holds."""
        ...

    def source(self, commit: str) -> str: ...

    def beat(self, activity: str, candidate: str | None, rung: int | None, wall_s: float, gpu_s: float) -> None:
        """Heartbeat for viewers and the budget's floor for a resume."""
        ...

    def samples(self, batch: tuple[LiveSample, ...]) -> None: ...

    def take_commands(self) -> tuple[CommandAccepted, ...]:
        """Commands viewers inserted that are not events yet, in order."""
        ...

    def spent(self) -> Spent:
        """Wall and GPU seconds this run has used so far, the heartbeat's later floor included."""
        ...

    def close(self) -> None: ...
