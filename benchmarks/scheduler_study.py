"""How the scheduler spends GPU seconds on the recorded pools, beside simpler ways; and what each of its parts is worth.

usage: python benchmarks/scheduler_study.py [--seeds 40] [--ablations] [--pools DIR] [--out FILE.json] [--docs FILE.md]

Everything on the pools is the real scheduler, adjudication and engine on simulated time (see docs/decisions/replay.md).
Effects: reads the pools; writes the results as JSON, a table between the marks of the page, and a plot beside it.
"""

import argparse
import json
import math
import platform
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.marked_page import between
from benchmarks.pool_ablations import ABLATIONS
from benchmarks.pool_strategies import Point, Trace, Truth, full_fidelity, halving, hill_climb, search
from benchmarks.scheduler_plot import Curve, Panel, plot
from kbtui.domain.event import ChildEntry
from kbtui.errors import UsageError
from kbtui.evaluation.devices.replay import ReplayDevice

ROOT = Path(__file__).parents[1]
POOLS = ROOT / "benchmarks/pools"
#: Found is within this of the pool's best; a champion should end within the closer one.
NEAR, CLOSE = 0.02, 0.01
#: A crowning is wrong where full fidelity says that the winner is slower by more than the width of a tie.
TIE = 0.005
#: Champions this near each other are equal: three processes on a GPU do not tell them apart.
EQUAL = 0.001
THIS, FULL = "this scheduler", "everything at full fidelity, same order"
SCREENED, HALVING, CLIMB = "mutations enter at the screen", "random order, successive halving", "greedy hill-climb"


@dataclass(frozen=True, slots=True)
class Row:
    """One strategy on one pool over all seeds. Seconds are of the GPU unless named otherwise; None: not reached.

    ``found`` is when what was held as the best first came within 2 % of the pool's best, ``confirmed`` when a champion
    did; medians over all seeds. ``short`` is by how much the confirmed champion at the end is slower than the best.
    """

    pool: str
    strategy: str
    n_seeds: int
    found_s: float | None
    found_s_5: float | None
    found_s_95: float | None
    found_wall_s: float | None
    found_candidates: float | None
    confirmed_s: float | None
    total_s: float
    total_candidates: float
    n_found: int
    short_mean: float
    short_worst: float
    n_close: int
    crownings: int
    wrong_crownings: int

    @property
    def close_share(self) -> float:
        return self.n_close / self.n_seeds


def row_of(pool: str, strategy: str, truth: Truth, traces: list[Trace]) -> Row:
    found = [first_within(t.points, truth) for t in traces]
    confirmed = [first_within([p for p in t.points if p.confirmed], truth) for t in traces]
    short = [truth.short(t.last.held) if t.last.confirmed else math.inf for t in traces]
    crownings = [c for t in traces for c in t.crownings]
    wrong = [c for c in crownings if truth.short(c.winner) - truth.short(c.loser) > TIE]
    seconds = [p.gpu_s if p else math.inf for p in found]
    return Row(
        pool, strategy, len(traces),
        _finite(median(seconds)), _finite(_quantile(seconds, 0.05)), _finite(_quantile(seconds, 0.95)),
        _finite(median(p.wall_s if p else math.inf for p in found)),
        _finite(median(p.n_candidates if p else math.inf for p in found)),
        _finite(median(p.gpu_s if p else math.inf for p in confirmed)),
        median(t.last.gpu_s for t in traces), median(t.last.n_candidates for t in traces),
        sum(p is not None for p in found), fmean(short), max(short), sum(s <= CLOSE for s in short),
        len(crownings), len(wrong),
    )  # fmt: skip


def first_within(points: Iterable[Point], truth: Truth, within: float = NEAR) -> Point | None:
    return next((p for p in points if truth.short(p.held) <= within), None)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _quantile(values: list[float], part: float) -> float:
    ordered = sorted(values)
    return ordered[min(round(part * (len(ordered) - 1)), len(ordered) - 1)]


def strategies(device: ReplayDevice, seed: int) -> dict[str, Trace]:
    """Every strategy of the comparison with one seed; full fidelity takes candidates in this scheduler's order."""
    mine = search(device, seed)
    return {
        THIS: mine,
        SCREENED: search(device, seed, child_entry=ChildEntry.SCREEN),
        FULL: full_fidelity(device, seed, mine.admitted),
        HALVING: halving(device, seed),
        CLIMB: hill_climb(device, seed),
    }


def ablated(device: ReplayDevice, seed: int) -> dict[str, Trace]:
    found = {a.name: a.run(device, seed) for a in ABLATIONS}
    return {name: trace for name, trace in found.items() if trace is not None}


@dataclass(frozen=True, slots=True)
class Studied:
    """One pool: who recorded it, the rows, the curves of the plot."""

    name: str
    device: str
    n_candidates: int
    best_over_first: float
    rows: tuple[Row, ...]
    ablations: tuple[Row, ...]
    panel: Panel


def study(path: Path, n_seeds: int, ablations: bool, say: Callable[[str], None]) -> Studied:
    device = ReplayDevice(path)
    truth, name = Truth.of(device.pool), path.name.removesuffix(".jsonl.gz")
    say(f"{name}: {len(device.pool.candidates)} candidates, {n_seeds} seeds")
    traces = _gathered(strategies(device, seed) for seed in range(n_seeds))
    taken = _gathered(ablated(device, seed) for seed in range(n_seeds)) if ablations else {}
    curves = tuple(curve_of(strategy, of, truth) for strategy, of in traces.items())
    return Studied(
        name, f"{device.pool.header.device.name}, driver {device.pool.header.driver}", len(device.pool.candidates),
        math.exp(truth.best), tuple(row_of(name, s, truth, of) for s, of in traces.items()),
        tuple(row_of(name, s, truth, of) for s, of in taken.items()), Panel(name, curves),
    )  # fmt: skip


def _gathered(by_seed: Iterable[dict[str, Trace]]) -> dict[str, list[Trace]]:
    found: dict[str, list[Trace]] = {}
    for one in by_seed:
        for name, trace in one.items():
            found.setdefault(name, []).append(trace)
    return found


def curve_of(strategy: str, traces: list[Trace], truth: Truth) -> Curve:
    """Median over seeds of how far short the kernel held is, at every GPU second."""
    end_s = math.ceil(max(t.last.gpu_s for t in traces))
    steps = [[(p.gpu_s, truth.short(p.held)) for p in t.points] for t in traces]
    points = [(float(s), median(_at(step, s) for step in steps)) for s in range(0, end_s + 1)]
    return Curve(strategy, tuple((s, short) for s, short in points if math.isfinite(short)))


def _at(step: list[tuple[float, float]], second: float) -> float:
    return next((short for s, short in reversed(step) if s <= second), math.inf)


# The page


def table(studied: list[Studied]) -> str:
    head = [
        "| pool | strategy | GPU s until within 2 % (5–95 % of seeds) | of full fidelity | candidates until then |"
        " GPU s until confirmed | GPU s in all | champion short of the best, mean (worst) | within 1 % |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join((*head, *(_line(row, s.rows) for s in studied for row in s.rows)))


def _line(row: Row, rows: tuple[Row, ...]) -> str:
    full = next(r for r in rows if r.strategy == FULL)
    ratio = f"{row.found_s / full.found_s:.2f}" if row.found_s and full.found_s else "—"
    spread = f" ({_number(row.found_s_5)}–{_number(row.found_s_95)})"
    return (
        f"| {row.pool} | {row.strategy} | {_number(row.found_s)}{spread} | {ratio} | {_number(row.found_candidates)} |"
        f" {_number(row.confirmed_s)} | {row.total_s:.0f} | {_percent(row.short_mean)} ({_percent(row.short_worst)}) |"
        f" {row.n_close} of {row.n_seeds} |"
    )


def ablation_table(studied: list[Studied]) -> str:
    head = [
        "| pool | search | GPU s until within 2 % | time until then, s | GPU s in all | champion short, mean (worst) |"
        " within 1 % | new leaders | of them wrong |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    lines = []
    for one in studied:
        by_name = {r.strategy: r for r in one.ablations}
        this = next(r for r in one.rows if r.strategy == THIS)
        lines += [_ablation_line(this)]
        lines += [
            _ablation_line(by_name[a.name]) if a.name in by_name else _cannot(one, a.name, a.cannot) for a in ABLATIONS
        ]
    return "\n".join((*head, *lines))


def _ablation_line(row: Row) -> str:
    return (
        f"| {row.pool} | {row.strategy} | {_number(row.found_s)} | {_number(row.found_wall_s)} | {row.total_s:.0f} |"
        f" {_percent(row.short_mean)} ({_percent(row.short_worst)}) | {row.n_close} of {row.n_seeds} |"
        f" {row.crownings} | {row.wrong_crownings} |"
    )


def _cannot(one: Studied, name: str, why: str) -> str:
    return f"| {one.name} | {name} | not shown: {why} | | | | | | |"


def _number(value: float | None) -> str:
    return "never" if value is None else f"{value:.0f}"


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %" if math.isfinite(part) else "none"


def targets(studied: list[Studied]) -> str:
    """Whether each target is met on each pool, one line a pool."""
    return "\n".join(f"- {one.name}: {_target(one)}" for one in studied)


def _target(one: Studied) -> str:
    rows = {r.strategy: r for r in one.rows}
    this, full = rows[THIS], rows[FULL]
    if this.found_s is None or full.found_s is None:
        return "missed: not found in most seeds"
    part = this.found_s / full.found_s
    met = part <= 1 / 3 and this.short_mean <= full.short_mean + EQUAL and this.close_share >= 0.95
    return (
        f"{'met' if met else 'missed'}: {part:.2f} of the GPU seconds of full fidelity, "
        f"champion {_percent(this.short_mean)} short against {_percent(full.short_mean)}, "
        f"within 1 % in {100 * this.close_share:.0f} % of seeds{_of_ladder_off(one, this)}"
    )


def _of_ladder_off(one: Studied, this: Row) -> str:
    """The time until found beside that of the same search with every candidate at full fidelity, where it was run."""
    off = next((r.found_wall_s for r in one.ablations if r.strategy == "ladder off"), None)
    if not off or not this.found_wall_s:
        return ""
    return f"; {this.found_wall_s / off:.2f} of the time that the same search takes with the ladder off"


def write(studied: list[Studied], options: argparse.Namespace, took_s: float) -> None:
    heading = {
        "command": command(options),
        "machine": f"{platform.machine()}, python {platform.python_version()}",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "seconds": round(took_s),
    }
    pools = [
        {"name": s.name, "device": s.device, "candidates": s.n_candidates, "best_over_first": s.best_over_first,
         "rows": [asdict(r) for r in s.rows], "ablations": [asdict(r) for r in s.ablations]}
        for s in studied
    ]  # fmt: skip
    options.out.write_text(json.dumps({**heading, "pools": pools}, indent=1) + "\n")
    if not options.docs.exists():
        return
    made = f"Made by `{heading['command']}`, {heading['date']}; seconds are those of the GPU named by the pool."
    page = between(options.docs.read_text(), "targets", targets(studied))
    page = between(page, "table", f"{table(studied)}\n\n{made}")
    if options.ablations:
        page = between(page, "ablations", f"{ablation_table(studied)}\n\n{made}")
    options.docs.write_text(page)
    options.docs.with_suffix(".svg").write_text(plot([s.panel for s in studied], NEAR))


def command(options: argparse.Namespace) -> str:
    """What made the results, as one would type it again."""
    pools = "" if options.pools == POOLS else f" --pools {options.pools}"
    return f"python benchmarks/scheduler_study.py --seeds {options.seeds}{' --ablations' * options.ablations}{pools}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--ablations", action="store_true", help="one part of the scheduler taken away at a time")
    parser.add_argument("--pools", type=Path, default=POOLS)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/scheduler-study.json")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs/scheduler.md")
    options = parser.parse_args()
    paths = sorted(options.pools.glob("*.jsonl.gz"))
    if not paths or options.seeds < 1:  # what is kept of a study before must not become that of none
        parser.error(f"no *.jsonl.gz in {options.pools}" if not paths else "--seeds must be 1 at least")
    began = time.monotonic()
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True)  # noqa: E731
    try:
        studied = [study(path, options.seeds, options.ablations, say) for path in paths]
    except UsageError as error:
        parser.error(str(error))
    print(table(studied), targets(studied), *([ablation_table(studied)] if options.ablations else []), sep="\n\n")
    write(studied, options, time.monotonic() - began)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
