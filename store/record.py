"""Effects: a run's record, held open by one engine: git first, then the index in one transaction."""

import errno
import logging
import os
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime

from sqlalchemy import Connection, Engine, delete, func, insert, select
from sqlalchemy.dialects.sqlite import insert as upsert
from sqlalchemy.exc import OperationalError

from kbtui.domain.candidate import ArtifactRef, Attachment
from kbtui.domain.event import (
    CandidateAdmitted,
    CommandAccepted,
    CommandKind,
    Envelope,
    Event,
    RungCompleted,
    RunStarted,
    Spent,
)
from kbtui.domain.measurement import LiveSample
from kbtui.errors import DiskFullError, EngineError, UsageError
from store.artifacts import store_artifact
from store.index import reading
from store.ledger import Entry, RunBranch, read_source, run_names
from store.message import candidate_of, envelope_of_json
from store.objects import ObjectStore
from store.projection import apply_entry
from store.readme_branch import write_readme_branch
from store.reindex import open_or_rebuild, reconcile
from store.run_name import under_name
from store.subject import subject
from store.tables import CANDIDATE, COMMAND, EVENT, HEARTBEAT, LIVE_SAMPLE, RUN
from store.workspace import Workspace

#: Live samples kept of a run.
KEEP_SAMPLES = 4_000

_log = logging.getLogger(__name__)

Now = Callable[[], datetime]
#: Called with the name of each step between git and SQLite, so that a test can stop the process there.
Checkpoint = Callable[[str], None]


def utc_now() -> datetime:
    return datetime.now(UTC)


def no_checkpoint(_step: str) -> None:
    pass


class RunLedger:
    """One run held open for writing; made by ``create_run`` and ``open_run``, under the engine's lock.

    ``beat`` and ``samples`` may be called from other threads than the rest.
    """

    def __init__(
        self, workspace: Workspace, run: str, index: Engine, branch: RunBranch, now: Now, checkpoint: Checkpoint
    ) -> None:
        self.workspace = workspace
        self.run = run
        self._index = index
        self._branch = branch
        self._now = now
        self._checkpoint = checkpoint
        self._seq = -1
        self._started_at = now()
        self._commits: dict[str, str] = {}
        self._summaries: dict[str, str] = {}
        self._first: str | None = None
        self._unindexed: list[Entry] = []
        self._mute = False

    def events(self) -> Iterable[Envelope]:
        """All events so far, oldest first."""
        query = select(EVENT.c.body).where(EVENT.c.run == self.run).order_by(EVENT.c.seq)
        with reading(self._index) as connection:
            bodies = connection.execute(query).scalars().all()
        return (under_name(self.run, envelope_of_json(body)) for body in bodies)

    def commit_candidate(
        self, number: int, source: str, parents: tuple[str, ...], subject: str, trailers: tuple[tuple[str, str], ...]
    ) -> str:
        try:
            return self._branch.commit_candidate(number, source, parents, subject, trailers, self._started_at)
        except OSError as error:
            raise self._not_recorded(error) from error

    def append(
        self,
        event: Event,
        wall_s: float,
        gpu_s: float,
        attachments: tuple[Attachment, ...] = (),
        best: str | None = None,
    ) -> Envelope:
        """Once the branch has moved the event is recorded; an index that cannot be written then catches up later.

        Raises DiskFullError where there is no room, EngineError on a foreign commit on the branch; nothing is recorded
        then, and after DiskFullError the same can be appended again.
        """
        try:
            return self._append(event, wall_s, gpu_s, attachments, best)
        except OSError as error:
            raise self._not_recorded(error) from error

    def source(self, commit: str) -> str:
        return read_source(self._branch.objects, commit)

    def spent(self) -> Spent:
        """What the run has used: the later of its last event and its last heartbeat."""
        queries = [select(t.c.wall_s, t.c.gpu_s).where(t.c.run == self.run) for t in (RUN, HEARTBEAT)]
        with reading(self._index) as connection:
            rows = [row for query in queries for row in connection.execute(query)]
        return Spent(max((row.wall_s for row in rows), default=0.0), max((row.gpu_s for row in rows), default=0.0))

    def beat(self, activity: str, candidate: str | None, rung: int | None, wall_s: float, gpu_s: float) -> None:
        row = {
            "run": self.run,
            "pid": os.getpid(),
            "at_s": time.time(),
            "activity": activity,
            "candidate": candidate,
            "rung": rung,
            "wall_s": wall_s,
            "gpu_s": gpu_s,
        }
        statement = upsert(HEARTBEAT).values(row).on_conflict_do_update(index_elements=["run"], set_=row)
        self._best_effort(lambda connection: connection.execute(statement))

    def samples(self, batch: tuple[LiveSample, ...]) -> None:
        """Keep samples for the live pane, the last ``KEEP_SAMPLES`` of them."""
        if not batch:
            return
        rows = [self._sample_row(sample) for sample in batch]
        of_run = LIVE_SAMPLE.c.run == self.run

        def write(connection: Connection) -> None:
            connection.execute(insert(LIVE_SAMPLE), rows)
            newest = connection.execute(select(func.max(LIVE_SAMPLE.c.id)).where(of_run)).scalar_one()
            connection.execute(delete(LIVE_SAMPLE).where(of_run, LIVE_SAMPLE.c.id <= newest - KEEP_SAMPLES))

        self._best_effort(write)

    def take_commands(self) -> tuple[CommandAccepted, ...]:
        """Commands which are not events yet, in order; the same again until they are appended.

        What a later version's viewer asked, of a kind that is not known here, is left where it is.
        """
        known = COMMAND.c.kind.in_([str(kind) for kind in CommandKind])
        pending = (COMMAND.c.run == self.run, COMMAND.c.accepted_seq.is_(None), known)
        query = select(COMMAND).where(*pending).order_by(COMMAND.c.id)
        with reading(self._index) as connection:
            rows = connection.execute(query).all()
        return tuple(CommandAccepted(r.id, CommandKind(r.kind), r.argument, r.note, r.parent) for r in rows)

    def close(self) -> None:
        self._branch.objects.close()
        self._index.dispose()

    def _append(
        self, event: Event, wall_s: float, gpu_s: float, attachments: tuple[Attachment, ...], best: str | None
    ) -> Envelope:
        refs = tuple(store_artifact(self.workspace.artifacts, attachment) for attachment in attachments)
        self._checkpoint("artifacts")
        event = _with_artifacts(event, refs)
        at = self._now().isoformat(timespec="milliseconds")
        envelope = Envelope(self._seq + 1, at, float(wall_s), float(gpu_s), event)
        line = subject(event, self._summaries, self._first)
        entry, tree = self._branch.write(envelope, line, refs, self._commit_of(event), best)
        self._checkpoint("objects")
        self._branch.advance(entry, tree)
        self._checkpoint("ref")
        self._remember(envelope)
        self._unindexed.append(entry)
        self._catch_up()
        self._checkpoint("index")
        return envelope

    def _not_recorded(self, error: OSError) -> EngineError:
        """Full, and the branch where it was: what was written is only unreferenced, so a second try is sound."""
        what = f"cannot record in {self.workspace.root}: {error.strerror}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT) and self._branch.stands():
            return DiskFullError(what, "make room, and it goes on")
        return EngineError(what, "mend that, then `kbtui resume`")

    def _best_effort(self, write: Callable[[Connection], object]) -> None:
        """A transaction for what viewers alone read: a full disk must not end the search for it."""
        try:
            with self._index.begin() as connection:
                write(connection)
        except OperationalError as error:
            if not self._mute:
                _log.warning("no sign of life written: %s", error.orig)
            self._mute = True
        else:
            self._mute = False

    def _catch_up(self) -> None:
        try:
            with self._index.begin() as connection:
                for entry in self._unindexed:
                    apply_entry(connection, self.run, entry)
                self._checkpoint("rows")
        except OperationalError as error:
            _log.warning("the index lags %d events behind the ledger: %s", len(self._unindexed), error.orig)
        else:
            self._unindexed.clear()

    def _commit_of(self, event: Event) -> str | None:
        if isinstance(event, CandidateAdmitted):
            return event.commit
        return self._commits.get(candidate_of(event) or "")

    def _recall(self) -> None:
        """What appends need to know of the run so far, from the index, without reading every event again."""
        run = select(RUN.c.seq, RUN.c.started_at).where(RUN.c.run == self.run)
        admitted = select(CANDIDATE.c.id, CANDIDATE.c.commit_id, CANDIDATE.c.summary).where(CANDIDATE.c.run == self.run)
        with reading(self._index) as connection:
            self._seq, started_at = connection.execute(run).one()
            candidates = connection.execute(admitted.order_by(CANDIDATE.c.admitted_seq)).all()
        self._started_at = datetime.fromisoformat(started_at)
        self._commits = {id_: commit for id_, commit, _ in candidates}
        self._summaries = {id_: summary for id_, _, summary in candidates}
        self._first = candidates[0].id if candidates else None

    def _remember(self, envelope: Envelope) -> None:
        self._seq = envelope.seq
        match envelope.event:
            case RunStarted():
                self._started_at = datetime.fromisoformat(envelope.at)
            case CandidateAdmitted(candidate=candidate, commit=commit):
                self._commits[candidate.id] = commit
                self._summaries[candidate.id] = candidate.summary
                self._first = self._first or candidate.id

    def _sample_row(self, sample: LiveSample) -> dict[str, object]:
        return {
            "run": self.run,
            "candidate": sample.candidate,
            "against": sample.against,
            "shape": sample.shape,
            "candidate_us": sample.candidate_us,
            "other_us": sample.other_us,
            "pair": sample.pair,
            "max_pairs": sample.max_pairs,
        }


def create_run(
    workspace: Workspace, started: RunStarted, *, now: Now = utc_now, checkpoint: Checkpoint = no_checkpoint
) -> RunLedger:
    """A new run with ``started`` as its first event; its name, ``<problem>-<next number>``, replaces ``started.run``.

    Call it under the engine's lock. The first event is in ``events()``.
    """
    index, _ = open_or_rebuild(workspace)
    objects = ObjectStore(workspace.git_dir)
    run = next_run_name(started.problem, run_names(workspace.git_dir))
    write_readme_branch(objects, now())
    ledger = RunLedger(workspace, run, index, RunBranch(objects, run), now, checkpoint)
    ledger.append(replace(started, run=run), 0.0, 0.0)
    return ledger


def open_run(
    workspace: Workspace, run: str, *, now: Now = utc_now, checkpoint: Checkpoint = no_checkpoint
) -> RunLedger:
    """An existing run, its index brought in line with its ledger. Call it under the engine's lock.

    Raises UsageError where there is no such run, EngineError naming a commit on its branch that is not ours.
    """
    names = run_names(workspace.git_dir)
    if run not in names:
        known = f"there are {', '.join(names)}" if names else "there are none here"
        raise UsageError(f"no run {run!r} in {workspace.root}", known)
    index, _ = open_or_rebuild(workspace)
    branch = RunBranch(ObjectStore(workspace.git_dir), run)
    ledger = RunLedger(workspace, run, index, branch, now, checkpoint)
    try:
        branch.take_over()
        reconcile(index, branch)
    except EngineError:
        ledger.close()
        raise
    ledger._recall()
    return ledger


def next_run_name(problem: str, names: Iterable[str]) -> str:
    """``softmax-7`` after ``softmax-6``; the problem's name made fit for a branch."""
    stem = re.sub(r"[^A-Za-z0-9_]+", "-", problem).strip("-") or "run"
    numbers = (name.removeprefix(f"{stem}-") for name in names if name.startswith(f"{stem}-"))
    return f"{stem}-{1 + max((int(number) for number in numbers if number.isdecimal()), default=0)}"


def _with_artifacts(event: Event, refs: tuple[ArtifactRef, ...]) -> Event:
    if refs and isinstance(event, RungCompleted):
        return replace(event, outcome=replace(event.outcome, artifacts=event.outcome.artifacts + refs))
    return event
