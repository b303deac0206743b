"""Does the comparison keep its error rates? The simulated part: null, power, drift, and whole runs of null candidates.

usage: python benchmarks/adjudication_simulated.py [--comparisons 2000] [--runs 200] [--out FILE.json] [--docs FILE.md]

The real pairs (``time_pair``), looks and decision, on simulated clocks. Noise between processes is as measured on an
H200, and no draw from the prior that the decision judges by; within one it is heavy-tailed, and made worse by bursts, a
linear drift, or both. The part on a GPU is benchmarks/adjudication.py.
"""

import argparse
import json
import math
import platform
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, median

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.marked_page import between
from kbtui.domain.measurement import Comparison, Outcome
from kbtui.domain.rung import CONFIRM, DEFAULT_LADDER, MEASURE, PROFILE, SCREEN, Rung
from kbtui.evaluation.measure.adjudicate import SHAPES_ALIKE, Evidence, compare, decide, settled_within
from kbtui.evaluation.measure.further import compare_fresh, n_further
from kbtui.evaluation.measure.loop import NEVER, time_pair
from kbtui.evaluation.measure.schedule import calls_per_block, looks

ROOT = Path(__file__).parents[1]
SMALL_US, LARGE_US, MIDDLE_US = 7.8, 135.0, 100.0
#: A softmax's three shapes on an H200: nearly all that is unsure of their mean is the shortest.
THREE_US = (135.0, 7.8, 520.0)
#: Standard deviation of a side's time from process to process: what 64 processes of a 7.8 us kernel showed, and as a
#: part of it twice what fits longer ones (docs/measurement.md).
PROCESS_US, PROCESS_SHARE = 0.093, 0.001
#: Six of those 64 comparisons met a process that was slower by so much; none of 190 of 99.5 us did.
SLOW_BY, SLOW_BELOW_US = (0.05, 0.08), 20.0


@dataclass(frozen=True, slots=True)
class Weather:
    """What spoils times. ``tail``: least divisor of the noise, so the smaller the heavier its tail (0.01: Cauchy's).

    ``drift``: by what part times grow, linearly, over a comparison of full length; ``burst``: part of calls that take
    up to a third longer; ``slow``: part of a small kernel's processes in which all calls take ``SLOW_BY`` longer.
    """

    name: str
    tail: float = 0.5
    burst: float = 0.0
    drift: float = 0.0
    slow: float = 0.0


CALM = Weather("calm")
WEATHERS = (
    CALM,
    Weather("5 % linear drift", drift=0.05),
    Weather("bursts, one call in twenty", burst=0.05),
    Weather("heavy tails", tail=0.01),
    Weather("slow processes, one in eleven", slow=1 / 11),
    Weather("all four", tail=0.01, burst=0.05, drift=0.05, slow=1 / 11),
)
SLOW = WEATHERS[-2]


class Clock:
    """What both sides' calls are timed by, in the order in which they run."""

    def __init__(self, rng: random.Random, weather: Weather, n_calls: int) -> None:
        self.rng, self.weather, self.a_call = rng, weather, weather.drift / n_calls
        self.n = 0

    def call_us(self, base_us: float) -> float:
        self.n += 1
        noise = 0.004 * self.rng.gauss(0, 1) / max(abs(self.rng.gauss(0, 1)), self.weather.tail)
        bump = 0.33 * self.rng.random() if self.rng.random() < self.weather.burst else 0.0
        return base_us * (1 + self.a_call * self.n) * max(1 + noise + bump, 0.5)


class Side:
    """One shape in one process: its own speed, moved by the noise between processes."""

    def __init__(self, clock: Clock, base_us: float, rng: random.Random, shared: float | None = None) -> None:
        self.clock = clock
        own = rng.gauss(0, 1)
        moved = own if shared is None else math.sqrt(SHAPES_ALIKE) * shared + math.sqrt(1 - SHAPES_ALIKE) * own
        self.us = base_us + math.hypot(PROCESS_US, PROCESS_SHARE * base_us) * moved
        if base_us < SLOW_BELOW_US and clock.weather.slow and rng.random() < clock.weather.slow:
            self.us *= 1 + rng.uniform(*SLOW_BY)

    def timed(self, n_calls: int, keep: int) -> list[float]:
        return [self.clock.call_us(self.us) for _ in range(n_calls)]


def process_of(clock: Clock, base_us: tuple[float, ...], rng: random.Random) -> tuple[Side, ...]:
    """One side of a process pair, shape by shape; its shapes have a part of their noise in common."""
    shared = rng.gauss(0, 1) if len(base_us) > 1 else None
    return tuple(Side(clock, us, rng, shared) for us in base_us)


class Compared:
    """One comparison as the device makes it on a rung: its looks, its early stop, its fresh processes, further ones."""

    def __init__(
        self, rng: random.Random, base_us: tuple[float, ...], speedup: float, rung: Rung, weather: Weather
    ) -> None:
        self.rng, self.base_us, self.speedup, self.rung = rng, base_us, speedup, rung
        self.n_calls = [calls_per_block(us) for us in base_us]
        most = max(rung.process_pairs, 1) + rung.more_process_pairs
        self.clock = Clock(rng, weather, 4 * sum(self.n_calls) * rung.max_pairs * most)
        self.one = rung.process_pairs <= 1
        fresh = tuple(n for n in (4, 8, rung.max_pairs) if n <= rung.max_pairs)
        self.schedule = looks(rung.max_pairs) if self.one else fresh
        self.done: list[tuple[tuple[float, ...], ...]] = []

    def found(self) -> Comparison:
        self.play(max(self.rung.process_pairs, 1))
        first = self.comparison()
        self.play(n_further(self.rung, [first]))
        return self.comparison()

    def play(self, n_process_pairs: int) -> None:
        for _ in range(n_process_pairs):
            mine = process_of(self.clock, tuple(us / self.speedup for us in self.base_us), self.rng)
            theirs = process_of(self.clock, self.base_us, self.rng)
            pairs: list[tuple[float, ...]] = []
            for n in self.schedule:
                while len(pairs) < n:
                    pairs.append(self.pair(len(pairs), mine, theirs))
                if self.enough(self.evidence(tuple(pairs))):
                    break
            self.done.append(tuple(pairs))

    def pair(self, number: int, mine: tuple[Side, ...], theirs: tuple[Side, ...]) -> tuple[float, ...]:
        sides = zip(mine, theirs, self.n_calls, strict=True)
        return tuple(time_pair(number, own, other, n, self.rng).log_ratio for own, other, n in sides)

    def evidence(self, *unfinished: tuple[tuple[float, ...], ...]) -> Evidence:
        return Evidence(tuple(map(str, self.base_us)), self.base_us, (*self.done, *unfinished))

    def enough(self, evidence: Evidence) -> bool:
        return decide(evidence, len(self.schedule)) is not Outcome.UNCLEAR if self.one else settled_within(evidence)

    def comparison(self) -> Comparison:
        if self.one:
            return compare("it", self.evidence(), len(self.schedule))
        return compare_fresh("it", self.evidence(), self.rung)


def compared(rng: random.Random, base_us: float, speedup: float, rung: Rung, weather: Weather) -> Comparison:
    return Compared(rng, (base_us,), speedup, rung, weather).found()


def sequential(rng: random.Random, base_us: float, rung: Rung, weather: Weather) -> Outcome:
    """First all of the candidate's calls, then all of the other's: the same number, judged in the same way."""
    n_calls = calls_per_block(base_us)
    clock = Clock(rng, weather, 4 * n_calls * rung.max_pairs)
    mine, theirs = Side(clock, base_us, rng), Side(clock, base_us, rng)
    blocks = [[median(side.timed(2 * n_calls, NEVER)) for _ in range(rung.max_pairs)] for side in (mine, theirs)]
    pairs = tuple((math.log(b / a),) for a, b in zip(*blocks, strict=True))
    return decide(Evidence(("s",), (base_us,), (pairs,)), 1)


@dataclass(frozen=True, slots=True)
class Row:
    """Outcomes of many comparisons of one kind, and how many pairs they took on the average.

    ``base_us`` by shape; ``further``: how many of them had further process pairs.
    """

    kind: str
    weather: str
    base_us: tuple[float, ...]
    speedup: float
    rung: int
    more_process_pairs: int
    n: int
    faster: int
    slower: int
    tie: int
    unclear: int
    pairs: float
    further: int


def row(kind: str, base_us: tuple[float, ...], speedup: float, rung: Rung, weather: Weather, n: int) -> Row:
    told = base_us[0] if len(base_us) == 1 else base_us
    found = [
        Compared(random.Random(f"{kind}/{told}/{rung.index}/{i}"), base_us, speedup, rung, weather).found()
        for i in range(n)
    ]
    count = Counter(c.outcome for c in found)
    return Row(
        kind, weather.name, base_us, speedup, rung.index, rung.more_process_pairs, n, count[Outcome.FASTER],
        count[Outcome.SLOWER], count[Outcome.TIE], count[Outcome.UNCLEAR], fmean(c.n_pairs for c in found),
        sum(c.n_processes > max(rung.process_pairs, 1) for c in found),
    )  # fmt: skip


def rows(n: int) -> Iterator[Row]:
    for weather in WEATHERS:
        for base_us in (SMALL_US,) if weather is SLOW else (SMALL_US, LARGE_US):
            for rung in (SCREEN, MEASURE, CONFIRM):
                yield row("null", (base_us,), 1.0, DEFAULT_LADDER[rung], weather, n)
    for weather in (CALM, WEATHERS[-1]):
        yield row("null", THREE_US, 1.0, DEFAULT_LADDER[CONFIRM], weather, n)
    for weather in (CALM, WEATHERS[-1]):
        for base_us, speedup, rung in ((MIDDLE_US, 1.02, MEASURE), (MIDDLE_US, 1.01, PROFILE),
                                       (SMALL_US, 1.15, MEASURE), (SMALL_US, 1.06, PROFILE)):  # fmt: skip
            yield row("power", (base_us,), speedup, DEFAULT_LADDER[rung], weather, n // 2)
    for weather in (CALM, WEATHERS[-1]):
        for shapes_us, speedup in ((THREE_US, 1.01), (THREE_US, 1.02), ((SMALL_US,), 1.02), ((SMALL_US,), 1.04)):
            for rung_ in (replace(DEFAULT_LADDER[CONFIRM], more_process_pairs=0), DEFAULT_LADDER[CONFIRM]):
                yield row("power", shapes_us, speedup, rung_, weather, n // 4)


@dataclass(frozen=True, slots=True)
class Drift:
    """Null comparisons with and without a drift of 5 % over each, from the same random numbers.

    ``changed``: a *faster* or *slower* came or went; ``blurred``: a tie became unclear, or the other way round.
    """

    n: int
    changed: int
    blurred: int
    sequential_wrong: int


def drift(n: int) -> Drift:
    drifting, rung = WEATHERS[1], DEFAULT_LADDER[MEASURE]
    pairs = [
        [compared(random.Random(f"drift/{i}"), LARGE_US, 1.0, rung, w).outcome for w in (CALM, drifting)]
        for i in range(n)
    ]
    fooled = [sequential(random.Random(f"sequential/{i}"), LARGE_US, rung, drifting) for i in range(n)]
    decided = (Outcome.FASTER, Outcome.SLOWER)
    differ = [(calm, moved) for calm, moved in pairs if calm is not moved]
    changed = sum(calm in decided or moved in decided for calm, moved in differ)
    return Drift(n, changed, len(differ) - changed, sum(o in decided for o in fooled))


@dataclass(frozen=True, slots=True)
class NullRuns:
    """Whole runs in which no candidate is faster than the first kernel.

    ``leaders``: runs with a false leader on the measure rung; ``champions``: runs that crowned one all the same.
    ``measured``: mean ratio of the false leaders where they won, and ``confirmed``: the same kernels' in fresh
    processes. Their difference is the winner's curse.
    """

    base_us: float
    runs: int
    candidates: int
    leaders: int
    champions: int
    measured: float
    confirmed: float


def null_runs(base_us: float, runs: int, candidates: int = 100) -> NullRuns:
    leaders = champions = 0
    won: list[tuple[float, float]] = []
    for run in range(runs):
        rng = random.Random(f"run/{base_us}/{run}")
        met = [compared(rng, base_us, 1.0, DEFAULT_LADDER[MEASURE], WEATHERS[-1]) for _ in range(candidates)]
        false = [c for c in met if c.outcome is Outcome.FASTER]
        again = [compared(rng, base_us, 1.0, DEFAULT_LADDER[CONFIRM], WEATHERS[-1]) for _ in false]
        leaders += bool(false)
        champions += any(c.outcome is Outcome.FASTER for c in again)
        won += [(c.ratio, a.ratio) for c, a in zip(false, again, strict=True)]
    means = [fmean(side) if side else 1.0 for side in zip(*won, strict=True)] or [1.0, 1.0]
    return NullRuns(base_us, runs, candidates, leaders, champions, means[0], means[1])


def page(found: list[Row], drifted: Drift, nulls: list[NullRuns]) -> str:
    lines = ["| comparisons | noise | kernel | rung | n | called faster | slower | tie | unclear | pairs | further |",
             "|---|---|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for r in found:
        further = f"{100 * r.further / r.n:.0f} %" if r.further else "—"
        kind = "the same kernel twice" if r.kind == "null" else f"truly {100 * (r.speedup - 1):.0f} % faster"
        lines.append(
            f"| {kind} | {r.weather} | {', '.join(f'{us:g}' for us in r.base_us)} µs | {rung_words(r)} | {r.n} |"
            f" {100 * r.faster / r.n:.2f} % | {100 * r.slower / r.n:.2f} % | {100 * r.tie / r.n:.1f} % |"
            f" {100 * r.unclear / r.n:.1f} % | {r.pairs:.1f} | {further} |"
        )
    return "\n".join(
        (*lines, "",
         f"**Drift.** A linear drift of 5 % over each of {drifted.n} null comparisons changed {drifted.changed}"
         f" decisions between faster, slower and neither; {drifted.blurred} went from tie to unclear or back."
         f" The same calls taken one side after the other were called faster or slower"
         f" {drifted.sequential_wrong} times.", "",
         "**Whole runs.** Candidates none of which is faster than the first kernel, under all four kinds of noise. "
         + " ".join(map(told, nulls)))
    )  # fmt: skip


def rung_words(r: Row) -> str:
    rung = DEFAULT_LADDER[r.rung]
    return rung.name if r.more_process_pairs == rung.more_process_pairs else f"{rung.name}, no further processes"


def told(null: NullRuns) -> str:
    curse = (
        f" The false leaders showed {100 * (null.measured - 1):+.2f} % where they won and"
        f" {100 * (null.confirmed - 1):+.2f} % in fresh processes."
    )
    return (
        f"In {null.runs} runs of {null.candidates} candidates of {null.base_us:g} µs each, {null.leaders} had a false"
        f" leader on the measure rung, {null.champions} ended with a false champion.{curse if null.leaders else ''}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=2000, help="null comparisons of each kind")
    parser.add_argument("--runs", type=int, default=200, help="whole runs of null candidates, of each kernel")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/adjudication-simulated.json")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs/measurement.md")
    options = parser.parse_args()
    began = time.monotonic()
    found = list(rows(options.comparisons))
    drifted, nulls = drift(options.comparisons // 2), [null_runs(us, options.runs) for us in (LARGE_US, SMALL_US)]
    made = page(found, drifted, nulls)
    print(made)
    kept = {
        "command": f"python benchmarks/adjudication_simulated.py --comparisons {options.comparisons}"
        f" --runs {options.runs}",
        "machine": f"{platform.machine()}, python {platform.python_version()}",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "seconds": round(time.monotonic() - began),
        "comparisons": [asdict(r) for r in found],
        "drift": asdict(drifted),
        "null_runs": [asdict(null) for null in nulls],
    }
    options.out.write_text(json.dumps(kept, indent=1) + "\n")
    if options.docs.exists():
        by = f"Made by `{kept['command']}`, {kept['date']}."
        options.docs.write_text(between(options.docs.read_text(), "simulated", f"{made}\n\n{by}"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
