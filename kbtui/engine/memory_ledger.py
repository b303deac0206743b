"""A ledger that lives as long as its process: of a search whose record nobody keeps, as in studies and tests."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from kbtui.domain.candidate import Attachment
from kbtui.domain.event import CommandAccepted, Envelope, Event, Spent
from kbtui.domain.measurement import LiveSample


@dataclass
class MemoryLedger:
    """See the port. Every event bears the same date: nothing that is decided may hang on one.

    ``best``: with each event the commit that the ledger's tree would hold; ``inbox``: commands to be taken.
    """

    run: str = "run-1"
    log: list[Envelope] = field(default_factory=list)
    blobs: dict[str, str] = field(default_factory=dict)
    inbox: list[CommandAccepted] = field(default_factory=list)
    best: list[str | None] = field(default_factory=list)

    def events(self) -> Iterable[Envelope]:
        return list(self.log)

    def commit_candidate(
        self, number: int, source: str, parents: tuple[str, ...], subject: str, trailers: tuple[tuple[str, str], ...]
    ) -> str:
        commit = f"commit{number}"
        self.blobs[commit] = source
        return commit

    def append(
        self,
        event: Event,
        wall_s: float,
        gpu_s: float,
        attachments: tuple[Attachment, ...] = (),
        best: str | None = None,
    ) -> Envelope:
        envelope = Envelope(len(self.log), "2026-01-01T00:00:00Z", wall_s, gpu_s, event)
        self.log.append(envelope)
        self.best.append(best)
        return envelope

    def source(self, commit: str) -> str:
        return self.blobs[commit]

    def beat(self, activity: str, candidate: str | None, rung: int | None, wall_s: float, gpu_s: float) -> None: ...

    def samples(self, batch: tuple[LiveSample, ...]) -> None: ...

    def take_commands(self) -> tuple[CommandAccepted, ...]:
        taken, self.inbox = tuple(self.inbox), []
        return taken

    def spent(self) -> Spent:
        return Spent(self.log[-1].wall_s, self.log[-1].gpu_s) if self.log else Spent()

    def close(self) -> None: ...
