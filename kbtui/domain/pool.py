"""A recorded pool: every candidate of a search on a real device, with what each rung found and what it cost."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kbtui.domain.candidate import Origin, source_sha
from kbtui.domain.codec import from_plain, to_plain
from kbtui.domain.device import DeviceSpec
from kbtui.domain.evaluation import ProblemReport, RungOutcome
from kbtui.domain.measurement import Measurement
from kbtui.domain.problem import Problem

POOL_FORMAT = 1


@dataclass(frozen=True, slots=True)
class ShapeSamples:
    """Times of one candidate on one shape: per process, the median of each of its ABBA pairs in microseconds."""

    shape: str
    processes: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class RecordedRung:
    """What one rung found, as recorded. ``samples`` are empty where the run's artifacts were not at hand."""

    rung: int
    outcome: RungOutcome
    samples: tuple[ShapeSamples, ...] = ()


@dataclass(frozen=True, slots=True)
class PoolCandidate:
    """One recorded candidate. ``parent``: SHA-256 of the source it was made from, None for a draft."""

    source_sha: str
    source: str
    parent: str | None
    origin: Origin
    structure: str
    summary: str
    notes: tuple[str, ...]
    rungs: tuple[RecordedRung, ...]

    def at(self, rung: int) -> RecordedRung | None:
        return next((r for r in self.rungs if r.rung == rung), None)

    @property
    def highest(self) -> RecordedRung:
        return max(self.rungs, key=lambda r: r.rung)


@dataclass(frozen=True, slots=True)
class PoolHeader:
    """Where a pool came from.

    Attributes:
        problem: the problem as it was searched, sources included, so that a pool outlives changes to a sample.
        device: the device the times were taken on; ``driver`` and ``versions`` (name, version) belong to it.
        report: what opening the problem there found, PyTorch's times included; it took ``open_wall_s``.
        ask_wall_s: median seconds that a question to each generator took.
        run, seed, recorded_at: the search, its seed and when it began (ISO 8601).
    """

    problem: Problem
    problem_sha: str
    device: DeviceSpec
    driver: str
    versions: tuple[tuple[str, str], ...]
    recorded_at: str
    run: str
    seed: int
    report: ProblemReport
    open_wall_s: float
    ask_wall_s: tuple[tuple[str, float], ...]
    format: int = POOL_FORMAT


@dataclass(frozen=True, slots=True)
class Pool:
    """Candidates in the order in which they were admitted; ``by_sha`` finds one by its source."""

    header: PoolHeader
    candidates: tuple[PoolCandidate, ...]
    by_sha: Mapping[str, PoolCandidate] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_sha", {c.source_sha: c for c in self.candidates})

    @property
    def generators(self) -> tuple[str, ...]:
        """Those that made a candidate of this pool, the problem's own kernel aside."""
        return tuple(dict.fromkeys(c.origin.generator for c in self.candidates if c.origin.generator != "seed"))


def pool_rows(pool: Pool) -> Iterator[Any]:
    """A pool as JSON values: the header, then one a candidate."""
    yield to_plain(pool.header)
    for candidate in pool.candidates:
        yield to_plain(candidate)


def pool_of_rows(rows: Iterable[Any]) -> Pool:
    """The inverse of ``pool_rows``. Raises ValueError on another format, TypeError or KeyError on other values.

    ValueError, too, on what no device can have found: a time that is not above zero, a cost below it, a source that is
    not the one named, a candidate without a rung or with two rows.
    """
    header, *candidates = rows
    if header.get("format") != POOL_FORMAT:
        raise ValueError(f"format {header.get('format')}, this kbtui reads {POOL_FORMAT}")
    pool = Pool(from_plain(PoolHeader, header), tuple(from_plain(PoolCandidate, row) for row in candidates))
    _check_header(pool.header)
    for candidate in pool.candidates:
        _check_candidate(candidate)
    if len(pool.by_sha) < len(pool.candidates):
        raise ValueError("a candidate has two rows")
    return pool


def _check_header(header: PoolHeader) -> None:
    _check("the header", all(map(_is_cost, (header.open_wall_s, header.report.gpu_s))), "a cost that is none")
    _check("the header", all(_is_cost(wall_s) for _, wall_s in header.ask_wall_s), "a cost that is none")
    for baseline in header.report.baselines:
        _check(baseline.name, _are_times(baseline.measurement), "a time that is none")


def _check_candidate(candidate: PoolCandidate) -> None:
    name = f"candidate {candidate.source_sha[:8]}"
    _check(name, source_sha(candidate.source) == candidate.source_sha, "another source than the one named")
    _check(name, bool(candidate.rungs), "no rung")
    for rung in candidate.rungs:
        _check(name, all(map(_is_cost, (rung.outcome.gpu_s, rung.outcome.wall_s))), "a cost that is none")
        _check(name, _are_times(rung.outcome.measurement), "a time that is none")
        taken = [times for shape in rung.samples for times in shape.processes]
        _check(name, all(times and all(map(_is_time, times)) for times in taken), "a sample that is none")


def _check(whose: str, holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(f"{whose} has {otherwise}")


def _are_times(measurement: Measurement | None) -> bool:
    timings = measurement.timings if measurement else ()
    return all(_is_time(t.low_us) and t.low_us <= t.device_us <= t.high_us < math.inf for t in timings)


def _is_time(value: float) -> bool:
    return 0 < value < math.inf


def _is_cost(value: float) -> bool:
    return 0 <= value < math.inf
