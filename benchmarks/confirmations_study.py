"""What confirmations cost a search on the recorded pools, and how good its champion is.

usage: python -m benchmarks.confirmations_study [--seeds 40] [--once] [--pools DIR]

``--once``: no confirmation plays further process pairs (docs/decisions/further-process-pairs.md). Effects: reads pools.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from benchmarks.pool_strategies import Truth, search
from benchmarks.scheduler_study import CLOSE
from kbtui.domain.rung import CONFIRM, DEFAULT_LADDER, Rung
from kbtui.evaluation.devices.replay import ReplayDevice

ROOT = Path(__file__).parents[1]
ONCE = tuple(replace(rung, more_process_pairs=0) for rung in DEFAULT_LADDER)
HEAD = "| pool | champion within 1 % of the best | GPU s in all, mean | GPU s of confirmations |\n|---|---|---|---|"


def line_of(path: Path, n_seeds: int, ladder: tuple[Rung, ...]) -> str:
    device = ReplayDevice(path)
    truth, traces = Truth.of(device.pool), [search(device, seed, ladder=ladder) for seed in range(n_seeds)]
    n_close = sum(t.last.confirmed and truth.short(t.last.held) <= CLOSE for t in traces)
    total_s = fmean(t.last.gpu_s for t in traces)
    confirming_s = fmean(dict(t.gpu_s_by_rung).get(CONFIRM, 0.0) for t in traces)
    return f"| {path.name.removesuffix('.jsonl.gz')} | {n_close} of {n_seeds} | {total_s:.1f} | {confirming_s:.1f} |"


def lines(pools: Path, n_seeds: int, ladder: tuple[Rung, ...]) -> Iterator[str]:
    yield HEAD
    for path in sorted(pools.glob("*.jsonl.gz")):
        yield line_of(path, n_seeds, ladder)


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--once", action="store_true", help="no confirmation plays further process pairs")
    parser.add_argument("--pools", type=Path, default=ROOT / "benchmarks/pools")
    options = parser.parse_args(words)
    for line in lines(options.pools, options.seeds, ONCE if options.once else DEFAULT_LADDER):
        print(line, flush=True)


if __name__ == "__main__":
    main()
