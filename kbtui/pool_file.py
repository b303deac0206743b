"""Pools on disk: gzipped JSON lines. Effects: reads and writes files.

A pool is made from a run's events and the texts of its candidates; its raw samples come from the run's artifacts.
"""

import gzip
import json
import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from kbtui.domain.evaluation import RungOutcome
from kbtui.domain.event import Envelope, ProblemOpened, ProposalsMade, RunStarted
from kbtui.domain.pool import Pool, PoolCandidate, PoolHeader, RecordedRung, ShapeSamples, pool_of_rows, pool_rows
from kbtui.domain.problem import Problem
from kbtui.errors import UsageError
from kbtui.scheduler.state import RunState, Tried, problem_sha

#: Bytes of an artifact by its SHA-256, None where it is not there.
ArtifactOf = Callable[[str], bytes | None]

#: What a damaged or foreign file raises, from the compressed bytes up to the values in them.
_NO_POOL = (OSError, EOFError, zlib.error, RecursionError, ValueError, TypeError, KeyError, AttributeError)


def read_pool(path: Path) -> Pool:
    """Raises UsageError in one line: no such file, or not a pool."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return pool_of_rows(json.loads(line) for line in lines)
    except FileNotFoundError:
        raise UsageError(f"no pool at {path}", "make one with benchmarks/make_pool.py") from None
    except _NO_POOL as error:
        raise UsageError(f"{path} is not a pool: {error}", "make one with benchmarks/make_pool.py") from None


def write_pool(path: Path, pool: Pool) -> None:
    """The same pool always makes the same bytes."""
    text = "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in pool_rows(pool))
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def pool_of_run(
    envelopes: Iterable[Envelope],
    problem: Problem,
    source_of: Callable[[str], str],
    artifact_of: ArtifactOf,
    driver: str,
    versions: tuple[tuple[str, str], ...],
) -> Pool:
    """The pool of one recorded run; ``source_of`` gives the text of a commit.

    Candidates which the run left before they were timed, and which had not failed either, are left out.
    Raises UsageError where the problem is not the one that was searched, or was never opened.
    """
    told = list(envelopes)
    state = RunState()
    for envelope in told:
        state.apply(envelope)
    if state.started is None or state.opened is None:
        raise UsageError("this run never opened its problem", "name another run")
    if problem_sha(problem) != state.started.problem_sha:
        raise UsageError(f"{problem.path} is not the problem of this run", "check out the sources of its time")
    kept = [t for t in state.tried.values() if _is_told(t)]
    shas = {t.candidate.id: t.candidate.source_sha for t in kept}
    candidates = tuple(_pool_candidate(t, shas, source_of, artifact_of) for t in kept)
    return Pool(_header(told, state.started, state.opened, problem, driver, versions), candidates)


def _is_told(tried: Tried) -> bool:
    return any(not r.outcome.verdict.ok or r.outcome.measurement is not None for r in tried.results.values())


def _header(
    told: list[Envelope],
    started: RunStarted,
    opened: ProblemOpened,
    problem: Problem,
    driver: str,
    versions: tuple[tuple[str, str], ...],
) -> PoolHeader:
    asked: dict[str, list[float]] = {}
    for envelope in told:
        if isinstance(envelope.event, ProposalsMade):
            asked.setdefault(envelope.event.generator, []).append(envelope.event.wall_s)
    return PoolHeader(
        problem=replace(problem, path=started.problem),
        problem_sha=started.problem_sha,
        device=started.device,
        driver=driver,
        versions=versions,
        recorded_at=told[0].at,
        run=started.run,
        seed=started.seed,
        report=opened.report,
        open_wall_s=next(e.wall_s for e in told if isinstance(e.event, ProblemOpened)),
        ask_wall_s=tuple((name, median(walls)) for name, walls in asked.items()),
    )


def _pool_candidate(
    tried: Tried, shas: dict[str, str], source_of: Callable[[str], str], artifact_of: ArtifactOf
) -> PoolCandidate:
    candidate = tried.candidate
    parent = candidate.parents[0] if candidate.parents else None
    rungs = tuple(
        RecordedRung(rung, result.outcome, _samples(result.outcome, artifact_of))
        for rung, result in sorted(tried.results.items())
    )
    return PoolCandidate(
        source_sha=candidate.source_sha,
        source=source_of(tried.commit),
        parent=shas.get(parent) if parent else None,
        origin=candidate.origin,
        structure=candidate.structure,
        summary=candidate.summary,
        notes=candidate.notes,
        rungs=rungs,
    )


def _samples(outcome: RungOutcome, artifact_of: ArtifactOf) -> tuple[ShapeSamples, ...]:
    for ref in outcome.artifacts:
        if ref.name.startswith("samples-") and (content := artifact_of(ref.sha256)) is not None:
            return samples_by_process(json.loads(content))
    return ()


def samples_by_process(taken: dict[str, Any]) -> tuple[ShapeSamples, ...]:
    """The candidate's times out of a recorded match: per shape and process, one median a pair, microseconds."""
    by_shape: dict[str, list[tuple[float, ...]]] = {}
    for process in taken.get("processes", ()):
        pairs: dict[str, list[float]] = {}
        for by_opponent in process.values():
            for shape, of_shape in by_opponent.items():
                pairs.setdefault(shape, []).extend(median(pair["candidate"]) for pair in of_shape)
        for shape, medians in pairs.items():
            by_shape.setdefault(shape, []).append(tuple(medians))
    for shape, alone in taken.get("alone", {}).items():
        if alone:
            by_shape.setdefault(shape, []).append(tuple(alone))
    return tuple(ShapeSamples(shape, tuple(processes)) for shape, processes in by_shape.items())
