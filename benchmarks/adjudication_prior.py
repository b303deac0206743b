"""How far processes differ: fits the prior of kbtui/evaluation/measure/adjudicate.py to what H200s showed.

usage: python benchmarks/adjudication_prior.py [--rows FILE.jsonl ...] [--docs FILE.md]

Two sources. The real study of comparisons (``--rows``, benchmarks/adjudication.py): log ratios of a kernel against
itself, and of planted slow-downs less their median. The recorded pools: a candidate met the same opponent on two rungs,
in other processes each time; the difference of the two log ratios, shape by shape. All are brought to one process pair,
by the root of the number of pairs behind them, and said to follow Student's t with the scale

    sqrt(2) * hypot(part, us / time)

Noise within processes is left in, which errs to the careful side. The likelihood is greatest on a grid.
"""

import argparse
import math
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.adjudication import Row, read
from benchmarks.marked_page import between
from kbtui.domain.pool import Pool, PoolCandidate
from kbtui.evaluation.devices.replay import ReplayDevice
from kbtui.evaluation.measure.adjudicate import (
    PRIOR_DEGREES,
    PROCESS_SIGMA_PART,
    PROCESS_SIGMA_US,
    SHAPES_ALIKE,
    ErrorRates,
    process_sigma,
)
from kbtui.evaluation.measure.robust import t_quantile

ROOT = Path(__file__).parents[1]
ROWS = ROOT / "benchmarks/results/h200-2026-11-30/adjudication-short-warm-up.jsonl"
DEGREES = (2, 3, 4, 5, 8, 30)
US, PART = [u / 1000 for u in range(50, 181, 4)], [p / 10000 for p in range(1, 31)]


class Seen(NamedTuple):
    """How far one process pair was from what others showed: a log ratio, and the time that scales it."""

    time_us: float
    log_ratio: float


class Meeting(NamedTuple):
    """A candidate and an opponent on one shape of one rung, in ``n_processes`` process pairs."""

    rung: int
    log_ratio: float
    n_processes: int
    time_us: float


class Fit(NamedTuple):
    log_likelihood: float
    degrees: float
    us: float
    part: float


def of_study(rows: Sequence[Row]) -> Iterator[Seen]:
    """A kernel against itself is truly 1; what was planted is what its comparisons show together."""
    for kind in sorted({(r.kind, r.shape) for r in rows}):
        mine = [r for r in rows if (r.kind, r.shape) == kind]
        truth = 0.0 if kind[0].startswith("same") else median(math.log(r.ratio) for r in mine)
        time_us = median(r.candidate_us for r in mine)
        yield from (Seen(time_us, (math.log(r.ratio) - truth) * math.sqrt(r.n_processes)) for r in mine)


def of_pool(pool: Pool) -> Iterator[Seen]:
    for candidate in pool.candidates:
        for met in _met(candidate).values():
            yield from _steps(met).values()


def _met(candidate: PoolCandidate) -> dict[tuple[str, str], list[Meeting]]:
    """By opponent and shape, rung by rung."""
    found: dict[tuple[str, str], list[Meeting]] = {}
    for recorded in sorted(candidate.rungs, key=lambda r: r.rung):
        measurement = recorded.outcome.measurement
        for met in measurement.comparisons if measurement else ():
            if met.against == "first" and any(c.against == "c0001" for c in measurement.comparisons):
                continue  # the same comparison under another name
            times = {t.shape: t.device_us for t in measurement.timings}
            for shape in met.shapes:
                meeting = Meeting(recorded.rung, math.log(shape.ratio), met.n_processes, times[shape.shape])
                found.setdefault((met.against, shape.shape), []).append(meeting)
    return found


def log_likelihood(seen: Iterable[Seen], degrees: float, us: float, part: float) -> float:
    """Of Student's t with that scale."""
    half = (degrees + 1) / 2
    constant = math.lgamma(half) - math.lgamma(degrees / 2) - 0.5 * math.log(degrees * math.pi)
    total = 0.0
    for time_us, log_ratio in seen:
        scale = math.sqrt(2) * math.hypot(part, us / time_us)
        total += constant - math.log(scale) - half * math.log1p((log_ratio / scale) ** 2 / degrees)
    return total


def fit(seen: Sequence[Seen], degrees: float) -> Fit:
    return max(Fit(log_likelihood(seen, degrees, us, part), degrees, us, part) for us, part in product(US, PART))


def alike(pool: Pool) -> float:
    """Correlation between shapes of how far a candidate's comparisons on two rungs, in other processes, are apart.

    From the variance of the mean over k shapes, which is (1 + (k - 1) r) / k of a shape's. Comparisons, not times: what
    moves both sides of a pair, on all shapes at once, is not in them.
    """
    apart = [moved for c in pool.candidates for moved in _moved(c) if len(moved) > 1]
    k = fmean(len(moved) for moved in apart)
    part = fmean(fmean(moved) ** 2 for moved in apart) / fmean(x * x for moved in apart for x in moved)
    return (k * part - 1) / (k - 1)


def _moved(candidate: PoolCandidate) -> Iterator[list[float]]:
    """Of every opponent between every two rungs the change of the log ratio, shape by shape, for one process pair.

    A shape that a rung more has timed, as the screen does one, moves between other rungs than the others meanwhile.
    """
    found: dict[tuple[str, tuple[int, int]], list[float]] = {}
    for (opponent, _), met in _met(candidate).items():
        for rungs, moved in _steps(met).items():
            found.setdefault((opponent, rungs), []).append(moved.log_ratio)
    yield from found.values()


def _steps(met: Sequence[Meeting]) -> dict[tuple[int, int], Seen]:
    """From each meeting to the next one, by their rungs; brought to one process pair."""
    return {
        (a.rung, b.rung): Seen(
            b.time_us, (a.log_ratio - b.log_ratio) / math.sqrt(1 / a.n_processes + 1 / b.n_processes)
        )
        for a, b in pairwise(met)
    }


def page(studied: list[Seen], pooled: list[Seen], fits: list[Fit], alikes: dict[str, float]) -> str:
    """The table of docs/measurement.md."""
    used = Fit(
        log_likelihood(studied + pooled, PRIOR_DEGREES, PROCESS_SIGMA_US, PROCESS_SIGMA_PART),
        PRIOR_DEGREES,
        PROCESS_SIGMA_US,
        PROCESS_SIGMA_PART,
    )
    return "\n".join((
        "| degrees of freedom | µs of a side | part of a side's time | log likelihood |", "|---|---|---|---|",
        *(_row(f, "") for f in fits), _row(used, ", used"), "",
        f"{len(studied)} comparisons of the study, {len(pooled)} of the pools. Correlation between shapes of one"
        f" process: {', '.join(f'{r:.2f} ({name})' for name, r in alikes.items())}; {SHAPES_ALIKE} is used.",
        "",
        "| kernel | one process pair calls faster from | three from |", "|---|---|---|",
        *(f"| {us:g} µs | {100 * told(us, 1):.2f} % | {100 * told(us, 3):.2f} % |" for us in (8, 20, 40, 100, 400)),
    ))  # fmt: skip


def _row(found: Fit, told: str) -> str:
    degrees, us, part = f"{found.degrees:g}{told}", f"{found.us:.3f}", f"{100 * found.part:.2f} %"
    return f"| {degrees} | {us} | {part} | {found.log_likelihood:.1f} |"


def told(time_us: float, n_processes: int) -> float:
    """The least lead that is called faster, were there no noise within processes; three differ as the prior says."""
    quantile = t_quantile(1 - ErrorRates().false_faster, PRIOR_DEGREES + n_processes - 1)
    return math.expm1(quantile * process_sigma(time_us) / math.sqrt(n_processes))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, nargs="+", default=[ROWS], help="what benchmarks/adjudication.py kept")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs/measurement.md")
    options = parser.parse_args()
    files = sorted((ROOT / "benchmarks/pools").glob("*.jsonl.gz"))
    pools = {path.name.removesuffix(".jsonl.gz"): ReplayDevice(path).pool for path in files}
    studied = [s for path in options.rows for s in of_study(read(path))]
    pooled = [s for pool in pools.values() for s in of_pool(pool)]
    fits = [fit(studied + pooled, degrees) for degrees in DEGREES]
    made = page(studied, pooled, fits, {name: alike(pool) for name, pool in pools.items()})
    print(made)
    names = " ".join(str(path.resolve().relative_to(ROOT)) for path in options.rows)
    by = (
        f"Made by `python benchmarks/adjudication_prior.py --rows {names}`, {time.strftime('%Y-%m-%d', time.gmtime())}."
    )
    options.docs.write_text(between(options.docs.read_text(), "prior", f"{made}\n\n{by}"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
