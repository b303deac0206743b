"""A kept case as it was before its contest, so that one can be held anew without a search. Effects: files, git."""

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
from kbtui.errors import EngineError
from store.reader import Reader


def folder_of_its_own(work: Path) -> Path:
    """Where one call measures anew: no search's workspace is there, and no other call's."""
    return work / f"again-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{os.getpid()}"


def restore(where: Places, device: str) -> CaseRecord:
    """The search out of its bundle. Returns the record, which the next contest's stands in the place of.

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
    return kept


def _holds(reader: Reader, kept: CaseRecord) -> bool:
    """Whether the run is there, came to its end, and made the champion."""
    champion = kept.kernel(CHAMPION)
    if champion is None or kept.story.run not in [row.run for row in reader.runs()]:
        return False
    state = reader.state(kept.story.run)
    tried = state.tried.get(champion.candidate)
    return is_over(state) and tried is not None and reader.source(tried.commit) == champion.source


def in_place_of(kept: CaseRecord, record: CaseRecord) -> CaseRecord:
    """The record of a contest held anew, with what the kept one alone tells of their search.

    What was compiled for sm_80 stands as long as the champion does.
    """
    mine, before = record.kernel(CHAMPION), kept.kernel(CHAMPION)
    same = mine is not None and before is not None and mine.source == before.source
    of_search = tuple(phase for phase in kept.phases if phase[0] in SEARCH_PHASES)
    return replace(
        record,
        story=replace(record.story, idle_share=kept.story.idle_share),
        a100=kept.a100 if same else None,
        phases=(*of_search, *record.phases),
        earlier=(*kept.earlier, earlier_of(kept)),
    )
