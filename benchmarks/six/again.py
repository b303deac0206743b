"""A kept case as it was before its contest, so that one can be held anew without a search. Effects: files, git."""

import json
import shutil
import subprocess

from benchmarks.make_pool import unbundled
from benchmarks.six.marks import SEARCH_PHASES
from benchmarks.six.places import Places
from benchmarks.six.record import earlier_of, read_record
from kbtui.domain.codec import to_plain
from kbtui.errors import EngineError


def restore(where: Places) -> None:
    """A kept case as it was before its contest: the search out of its bundle, and what the record alone tells of it.

    Raises EngineError where the bundle is not there, or is none.
    """
    kept = read_record(where.record)
    shutil.rmtree(where.folder, ignore_errors=True)
    where.folder.mkdir(parents=True)
    try:
        unbundled(where.bundle, where.workspace)
    except subprocess.CalledProcessError:
        raise EngineError(f"{where.bundle} is no bundle of a search", "remove its .json to search anew") from None
    where.idle.write_text(json.dumps(kept.story.idle_share), encoding="utf-8")
    of_search = [phase for phase in kept.phases if phase[0] in SEARCH_PHASES]
    where.phases.write_text(json.dumps(of_search), encoding="utf-8")
    earlier = (*kept.earlier, earlier_of(kept.contest))
    where.earlier.write_text(json.dumps(to_plain(earlier)), encoding="utf-8")
