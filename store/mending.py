"""Effects: branches of runs that a power loss left empty are put back to their last event.

Git's own writers and ours sync an object before a branch names it, and a branch's file before it is renamed, so this
needs a disk that does not keep what it said it had. What is mended is said in the log; what cannot be is an error.
"""

import contextlib
import logging
from pathlib import Path

from kbtui.errors import EngineError
from store.git_process import run_git
from store.ledger import IDENTITY, RUNS, parse_commit
from store.message import parse_event_message
from store.objects import ObjectStore
from store.refs import list_refs, move_ref

_log = logging.getLogger(__name__)


def mend_branches(git_dir: Path) -> tuple[str, ...]:
    """Put every run's branch that names no commit back to the run's last event; returns the names of these runs.

    Raises EngineError where no event of the run is to be found. Under the engine's lock.
    """
    damaged = [ref for ref, oid in list_refs(git_dir, RUNS).items() if oid is None]
    if not damaged:
        return ()
    objects = ObjectStore(git_dir)
    try:
        found = last_events(objects)
    finally:
        objects.close()
    for ref in damaged:
        run = ref.removeprefix(RUNS)
        if run not in found:
            raise EngineError(f"branch runs/{run} in {git_dir} names no commit", "fetch it from a copy, or delete it")
        move_ref(git_dir, ref, found[run], None)
        _log.warning("branch runs/%s named no commit; it is back at its last event, %s", run, found[run][:12])
    return tuple(ref.removeprefix(RUNS) for ref in damaged)


def last_events(objects: ObjectStore) -> dict[str, str]:
    """The sound event commit of the highest number of each run, by reading every commit there is.

    Two of one number were written by engines one of which died before it moved the branch: either goes on soundly.
    """
    listing = run_git(
        "cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectname)", git_dir=objects.git_dir
    )
    highest: dict[str, tuple[int, str]] = {}
    for line in listing.splitlines():
        kind, _, oid = line.partition(" ")
        if kind != "commit":
            continue
        with contextlib.suppress(EngineError, ValueError, KeyError, TypeError):
            commit = parse_commit(oid, objects.read(oid))
            if commit.committer == IDENTITY:
                run = commit.message.rpartition("\nRun: ")[2].strip()
                seq = parse_event_message(commit.message)[0].seq
                highest[run] = max(highest.get(run, (-1, "")), (seq, oid))
    return {run: oid for run, (_, oid) in highest.items()}
