"""Effects: one run's branch in git. Candidates and events are commits; the branch's first parents are the story."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from kbtui.domain.candidate import ArtifactRef, candidate_id
from kbtui.domain.event import Envelope
from kbtui.errors import EngineError
from store.git_process import run_git
from store.message import candidate_message, envelope_json, event_message, parse_event_message
from store.objects import ObjectStore
from store.refs import RefMovedError, break_ref_lock, list_refs, move_ref, read_ref

IDENTITY = "kbtui <kbtui@localhost>"
KERNEL_FILE = "kernel.py"
RUNS = "refs/heads/runs/"


@dataclass(frozen=True, slots=True)
class RawCommit:
    """A commit as git stores it."""

    oid: str
    tree: str
    parents: tuple[str, ...]
    committer: str
    message: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One event on the ledger: its commit, its JSON as written there, the attachments stored beside it."""

    commit: str
    envelope: Envelope
    body: str
    artifacts: tuple[ArtifactRef, ...]


class RunBranch:
    """``runs/<run>``, written by one engine. ``tip`` and ``tree`` are where it stands."""

    def __init__(self, objects: ObjectStore, run: str) -> None:
        self.objects = objects
        self.run = run
        self.ref = RUNS + run
        self.tip = read_ref(objects.git_dir, self.ref)
        self.tree = read_commit(objects, self.tip).tree if self.tip else objects.write(b"tree", b"")

    def take_over(self) -> None:
        """Clear what a killed engine left on the ref. Only under the engine's lock."""
        break_ref_lock(self.objects.git_dir, self.ref)

    def commit_candidate(
        self,
        number: int,
        source: str,
        parents: tuple[str, ...],
        subject: str,
        trailers: tuple[tuple[str, str], ...],
        run_started: datetime,
    ) -> str:
        """Same input, same id: the date is the run's start plus ``number`` seconds."""
        blob = self.objects.write(b"blob", source.encode(errors="surrogatepass"))
        tree = self.objects.write(b"tree", b"100644 " + KERNEL_FILE.encode() + b"\0" + bytes.fromhex(blob))
        message = candidate_message(candidate_id(number), subject, self.run, trailers)
        return write_commit(self.objects, tree, parents, message, int(run_started.timestamp()) + number)

    def write(
        self,
        envelope: Envelope,
        subject: str,
        artifacts: tuple[ArtifactRef, ...],
        candidate: str | None,
        best: str | None,
    ) -> tuple[Entry, str]:
        """Write the event's commit with the candidate's as second parent, synced; the branch is not moved yet.

        Returns the entry and its tree, for ``advance``.
        """
        tree = read_commit(self.objects, best).tree if best is not None else self.tree
        parents = tuple(oid for oid in (self.tip, candidate) if oid is not None)
        body = envelope_json(envelope)
        message = event_message(subject, self.run, envelope, body, artifacts)
        at_s = int(datetime.fromisoformat(envelope.at).timestamp())
        oid = write_commit(self.objects, tree, parents, message, at_s)
        self.objects.sync()
        return Entry(oid, envelope, body, artifacts), tree

    def advance(self, entry: Entry, tree: str) -> None:
        """Move the branch to an entry. Raises EngineError naming a foreign commit found there instead of ours."""
        try:
            move_ref(self.objects.git_dir, self.ref, entry.commit, self.tip)
        except RefMovedError as moved:
            raise self._foreign(moved.current) from None
        self.tip, self.tree = entry.commit, tree

    def stands(self) -> bool:
        """Whether the branch is where this writer left it."""
        return read_ref(self.objects.git_dir, self.ref) == self.tip

    def entries(self, since: str | None = None, from_seq: int = 0) -> Iterator[Entry]:
        """Events after the commit ``since``, oldest first. Raises EngineError at a commit that is not ours."""
        if self.tip is None:
            return
        excluded = [f"^{since}"] if since else []
        listing = run_git("rev-list", "--first-parent", "--reverse", self.tip, *excluded, git_dir=self.objects.git_dir)
        oids = listing.split()
        for seq, (oid, content) in enumerate(zip(oids, self.objects.read_many(oids), strict=True), from_seq):
            yield self._entry(parse_commit(oid, content), seq)

    def holds(self, commit: str) -> bool:
        """Whether a commit is on the branch's first-parent line."""
        listing = run_git("rev-list", "--first-parent", self.tip or "", git_dir=self.objects.git_dir)
        return commit in listing.split()

    def _entry(self, commit: RawCommit, seq: int) -> Entry:
        oid = commit.oid
        if commit.committer != IDENTITY:
            raise self._foreign(oid)
        try:
            envelope, body, artifacts = parse_event_message(commit.message)
        except (ValueError, KeyError, TypeError):
            raise self._foreign(oid) from None
        if envelope.seq != seq:
            raise self._foreign(oid)
        return Entry(oid, envelope, body, artifacts)

    def _foreign(self, oid: str | None) -> EngineError:
        if oid is None:
            return EngineError(f"branch runs/{self.run} is gone from {self.objects.git_dir}", "restore it, then resume")
        commit = read_commit(self.objects, oid)
        title = commit.message.partition("\n")[0]
        return EngineError(
            f"commit {oid[:12]} {title!r} by {commit.committer} on runs/{self.run} is not kbtui's",
            f"keep it on another branch and move runs/{self.run} back to the last event, then resume",
        )


def run_names(git_dir: Path) -> tuple[str, ...]:
    """Names of the runs that have a branch."""
    return tuple(sorted(ref.removeprefix(RUNS) for ref in list_refs(git_dir, RUNS)))


def write_commit(objects: ObjectStore, tree: str, parents: tuple[str, ...], message: str, at_s: int) -> str:
    """A commit of ours; ``at_s``: seconds since 1970, written as UTC."""
    lines = [f"tree {tree}", *(f"parent {oid}" for oid in parents)]
    lines += [f"{role} {IDENTITY} {at_s} +0000" for role in ("author", "committer")]
    return objects.write(b"commit", ("\n".join(lines) + "\n\n" + message).encode())


def read_commit(objects: ObjectStore, oid: str) -> RawCommit:
    """Raises EngineError where the commit is missing."""
    return parse_commit(oid, objects.read(oid))


def parse_commit(oid: str, content: bytes) -> RawCommit:
    head, _, message = content.decode(errors="replace").partition("\n\n")
    fields = [line.partition(" ") for line in head.splitlines()]
    values = {key: value for key, _, value in fields}
    parents = tuple(value for key, _, value in fields if key == "parent")
    return RawCommit(oid, values["tree"], parents, values.get("committer", "").rsplit(" ", 2)[0], message)


def read_source(objects: ObjectStore, commit: str) -> str:
    """The text of ``kernel.py`` in a commit. Raises EngineError where it has none."""
    tree = objects.read(read_commit(objects, commit).tree)
    prefix = b"100644 " + KERNEL_FILE.encode() + b"\0"
    at = tree.find(prefix)
    if at < 0:
        raise EngineError(f"commit {commit[:12]} holds no {KERNEL_FILE}", "name a candidate's commit")
    return objects.read(tree[at + len(prefix) : at + len(prefix) + 20].hex()).decode(errors="surrogatepass")
