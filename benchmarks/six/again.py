"""A kept case as it was before its contest, so that one can be held anew without a search. Effects: files, git."""

import json
import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.make_pool import unbundled
from benchmarks.six.marks import SEARCH_PHASES
from benchmarks.six.places import Places
from benchmarks.six.record import CHAMPION, CaseRecord, earlier_of, kind_named, read_record
from benchmarks.six.search import is_over
from kbtui.domain.codec import to_plain
from kbtui.errors import EngineError
from store.reader import Reader


def folder_of_its_own(work: Path) -> Path:
    """Where one call measures anew: no search's workspace is there, and no other call's."""
    return work / f"again-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{os.getpid()}"


def restore(where: Places, device: str) -> CaseRecord:
    """The search out of its bundle, and beside it what the record alone tells of it. Returns the record.

    Raises EngineError where a contest on that device could not stand in the kept one's place: the record is another
    case's or of another kind of device, or the bundle does not hold the search that ended with its champion.
    """
    kept = read_record(where.record)
    if kept.case != where.case.name:
        raise EngineError(f"{where.record} is of {kept.case}", "remove it to search anew")
    if kept.kind != kind_named(device):
        told = f"{where.record} was {kept.kind} on {kept.device.name}, {device} is {kind_named(device)}"
        raise EngineError(told, "name such a device, or another --out")
    where.folder.mkdir(parents=True)
    try:
        with Reader(unbundled(where.bundle, where.workspace)) as reader:
            whole = _holds(reader, kept)
    except subprocess.CalledProcessError:
        whole = False
    if not whole:
        told = f"{where.bundle} is no bundle of the search that {where.record.name} tells of"
        raise EngineError(told, "put it back, or remove both to search anew")
    where.idle.write_text(json.dumps(kept.story.idle_share), encoding="utf-8")
    of_search = [phase for phase in kept.phases if phase[0] in SEARCH_PHASES]
    where.phases.write_text(json.dumps(of_search), encoding="utf-8")
    earlier = (*kept.earlier, earlier_of(kept))
    where.earlier.write_text(json.dumps(to_plain(earlier)), encoding="utf-8")
    return kept


def _holds(reader: Reader, kept: CaseRecord) -> bool:
    """Whether the run is there, came to its end, and made the champion."""
    champion = kept.kernel(CHAMPION)
    if champion is None or kept.story.run not in [row.run for row in reader.runs()]:
        return False
    state = reader.state(kept.story.run)
    tried = state.tried.get(champion.candidate)
    return is_over(state) and tried is not None and reader.source(tried.commit) == champion.source


def with_a100(record: CaseRecord, kept: CaseRecord) -> CaseRecord:
    """What was compiled for sm_80 stands as long as the champion does."""
    mine, before = record.kernel(CHAMPION), kept.kernel(CHAMPION)
    same = mine is not None and before is not None and mine.source == before.source
    return replace(record, a100=kept.a100) if same else record
