"""A source that plays a recorded run from memory, and notes the commands it is given."""

from collections.abc import Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from typing import Any

from recorded_plans import Plan
from recorded_run import PROMPT_SHA, REPLY_SHA, RUN, SAMPLES_SHA, Recorder, recorded, samples, samples_json

from kbtui.domain.candidate import ArtifactRef
from kbtui.domain.event import CandidateAdmitted, CommandAccepted, CommandKind, Envelope, Event, ProposalsMade
from kbtui.domain.measurement import LiveSample
from kbtui.domain.overview import Totals, Window
from kbtui.errors import UsageError
from kbtui.tui.moment import Delta, Moment


@dataclass(frozen=True)
class FakeEngine:
    pid: int = 4242
    run: str = RUN
    alive: bool = True
    beat_age_s: float | None = 0.4
    activity: str = "measure"
    candidate: str | None = "c0040"
    rung: int | None = 2
    wall_s: float = 0.0
    gpu_s: float = 0.0


@dataclass(frozen=True)
class FakeRun:
    run: str = RUN
    problem: str = "softmax"
    device: str = "NVIDIA H200"
    clock: str = "measured"
    started_at: str = "2026-11-30T02:00:00Z"
    n_candidates: int = 40
    best_candidate: str | None = "c0015"
    best_score: float | None = 1.39
    end_reason: str | None = None
    wall_s: float = 461.0


@dataclass(frozen=True)
class FakeCommand:
    id: int
    kind: CommandKind
    argument: str
    note: str = ""
    parent: str | None = None


class FakeSource:
    """Plays ``recorder``'s envelopes; ``tell`` adds one, ``accept`` makes the waiting commands events."""

    def __init__(self, recorder: Recorder | None = None, engine: FakeEngine | None = None, n_samples: int = 14) -> None:
        self.recorder = recorder or recorded()
        self.engine_status: FakeEngine | None = engine if engine is not None else FakeEngine()
        self.rows: list[FakeRun] = [FakeRun()]
        self.live = list(enumerate(samples(n_samples), start=1)) if n_samples else []
        self.others: dict[str, Recorder] = {}
        self.asked: list[FakeCommand] = []
        self.version = 1
        self.failing: Exception | None = None

    def data_version(self) -> int:
        if self.failing is not None:
            raise self.failing
        return self.version

    def runs(self) -> Sequence[FakeRun]:
        return self.rows

    def envelopes(self, run: str, after_seq: int) -> Sequence[Envelope]:
        recorder = self.recorder if run == RUN else self.others.get(run)
        return [e for e in recorder.envelopes if e.seq > after_seq] if recorder is not None else []

    def first_window(self, run: str, n_newest: int) -> Window:
        return Window(tuple(self.envelopes(run, -1)), 0)

    def older_window(self, run: str, before_seq: int, n_more: int) -> Window:
        return Window(tuple(e for e in self.envelopes(run, -1) if e.seq < before_seq), 0)

    def events_of(self, run: str, candidates: Sequence[str]) -> Sequence[Envelope]:
        return self.envelopes(run, -1)

    def totals(self, run: str) -> Totals:
        events = self.envelopes(run, -1)
        n_candidates = sum(isinstance(e.event, CandidateAdmitted) for e in events)
        return Totals(n_candidates, len(events), (), ())

    def source(self, commit: str) -> str:
        return self.recorder.sources[commit]

    def engine(self) -> FakeEngine | None:
        return self.engine_status

    def live_samples(self, run: str, after_id: int) -> Sequence[tuple[int, LiveSample]]:
        return [(i, s) for i, s in self.live if i > after_id]

    def insert_command(self, run: str, kind: CommandKind, argument: str, note: str, parent: str | None) -> int:
        if run != RUN:
            raise UsageError(f"no run {run!r}", "`kbtui ls` lists the runs")
        self.asked.append(FakeCommand(len(self.asked) + 1, kind, argument, note, parent))
        self.version += 1
        return len(self.asked)

    def commands(self, run: str) -> Sequence[FakeCommand]:
        return self.asked

    def artifacts(self, run: str, candidate: str) -> Sequence[ArtifactRef]:
        tried = [e.event for e in self.recorder.envelopes if getattr(e.event, "candidate", None) == candidate]
        return [ref for event in tried for ref in event.outcome.artifacts]  # type: ignore[union-attr]

    def artifact(self, sha256: str) -> bytes:
        texts = {
            PROMPT_SHA: "# Task\nMake this softmax faster.",
            REPLY_SHA: "```python\nimport triton\n```",
            SAMPLES_SHA: samples_json(),
        }
        return texts[sha256].encode()

    def tell(self, event: Event, wall_s: float = 1.0) -> None:
        """Something happens in the run."""
        self.recorder.note(event, wall_s)
        self.version += 1

    def propose(self, number: int, plan: Plan) -> None:
        """A generator answers with one more candidate."""
        self.recorder.admit(number, plan)
        self.tell(ProposalsMade(plan.generator, None, 1, 0, False, 0.1))

    def accept(self) -> None:
        """The engine takes every command asked so far."""
        known = {e.event.command_id for e in self.recorder.envelopes if isinstance(e.event, CommandAccepted)}
        for c in self.asked:
            if c.id not in known:
                self.tell(CommandAccepted(c.id, c.kind, c.argument, c.note, c.parent))

    def lose_engine(self, age_s: float = 41.0) -> None:
        assert self.engine_status is not None
        self.engine_status = replace(self.engine_status, alive=False, beat_age_s=age_s)
        self.version += 1


def moment_of(source: FakeSource) -> Moment:
    """The moment after one read of everything."""
    moment = Moment(RUN)
    samples = tuple(s for _, s in source.live_samples(RUN, 0))
    envelopes = tuple(source.envelopes(RUN, -1))
    moment.apply(Delta(RUN, envelopes, source.engine(), samples, len(samples), tuple(source.commands(RUN)), 1))
    return moment


class InlineExecutor(Executor):
    """Runs each job at once in the caller: a test sees what a key did as soon as it was pressed."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future
