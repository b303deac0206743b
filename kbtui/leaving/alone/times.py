"""Times."""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from kbtui.leaving.alone.kernels import Problem, load_kernel
from kbtui.leaving.alone.small_parts import HERE, Function

#: Rounds in which the sides take turns, Student's t for their number, calls in a block.
ROUNDS, T_95 = 12, 2.201
BLOCK_US, MIN_CALLS, MAX_CALLS = 4000.0, 4, 64
CYCLES_PER_S = 2.0e9


def time_all(problem: Problem, plan: dict[str, Any], proof: str, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """On a GPU: kernel, first kernel and PyTorch in turns. Under the interpreter: the kernel's own seconds."""
    kernel = load_kernel(HERE / plan["kernel"], problem)
    shapes = plan["timed"][proof]
    if proof == "interpreter":
        say("times under the interpreter, on the CPU: they say nothing about a GPU")
        return [_interpreted(problem, kernel, where, say) for where in shapes]
    sides: dict[str, Function] = {"kernel": kernel, "PyTorch": problem.reference}
    if plan["first_kernel"]:
        sides["first kernel"] = load_kernel(HERE / plan["first_kernel"], problem)
    say("device time of one call, cold L2, median; ratios to the kernel with 95 % intervals")
    return [row for where in shapes for row in _in_turns(problem, sides, where, plan["recorded"], say)]


def _interpreted(
    problem: Problem, kernel: Function, where: dict[str, Any], say: Callable[[str], None]
) -> dict[str, Any]:
    inputs = problem.inputs(where)
    spent = []
    for _ in range(3):
        began = time.perf_counter()
        kernel(*inputs)
        spent.append((time.perf_counter() - began) * 1e3)
    say(f"  {where['shape']:20} {statistics.median(spent):9.1f} ms")
    return {"shape": where["shape"], "side": "kernel", "interpreter_ms": statistics.median(spent)}


def _in_turns(
    problem: Problem,
    sides: dict[str, Function],
    where: dict[str, Any],
    recorded: dict[str, Any],
    say: Callable[[str], None],
) -> list[dict[str, Any]]:
    """Rounds of one block a side, there and back, so that a drift of the clock falls on all alike."""
    copies = [problem.inputs({**where, "seed": where["seed"] + i}) for i in range(2)]
    bench = Bench()
    n_calls = {name: bench.calls_of(side, copies) for name, side in sides.items()}
    taken: dict[str, list[float]] = {name: [] for name in sides}
    medians: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(ROUNDS):
        for name in list(sides)[:: 1 if turn % 2 == 0 else -1]:
            block = bench.timed(sides[name], copies, n_calls[name])
            taken[name] += block
            medians[name].append(statistics.median(block))
    rows = []
    for name in sides:
        logs = [math.log(other / own) for other, own in zip(medians[name], medians["kernel"], strict=True)]
        mean = statistics.fmean(logs)
        half = T_95 * statistics.stdev(logs) / math.sqrt(len(logs))
        us = statistics.median(taken[name])
        ratio, low, high = (math.exp(v) for v in (mean, mean - half, mean + half))
        row = {"shape": where["shape"], "side": name, "us": us, "ratio": ratio, "low": low, "high": high}
        was = recorded["us"].get(name, {}).get(where["shape"])
        told = f"   the search: {was:.1f} us {recorded['clock']} on {recorded['device']}" if was else ""
        over = "" if name == "kernel" else f"  {ratio:.2f}x ({low:.2f}-{high:.2f})"
        say(f"  {where['shape']:16} {name:13} {us:9.2f} us{over:22}{told}")
        rows.append(row)
    return rows


class Bench:
    """Cold-L2 timing: a device-side sleep while the host queues, then flush, event, call, event, for each call."""

    def __init__(self) -> None:
        cache = torch.cuda.get_device_properties(0).L2_cache_size
        self._flush = torch.zeros(max(2 * cache, 1 << 20) // 4, device="cuda")
        self._sink = torch.zeros((), device="cuda")

    def calls_of(self, side: Function, copies: Sequence[tuple[Any, ...]]) -> int:
        """Warm up, then calls enough for a block."""
        began = time.perf_counter()
        n = 0
        while n < 5 or time.perf_counter() - began < 0.05:
            side(*copies[n % len(copies)])
            torch.cuda.synchronize()
            n += 1
        probe = statistics.median(self.timed(side, copies, MIN_CALLS))
        return max(MIN_CALLS, min(MAX_CALLS, round(BLOCK_US / max(probe, 1.0))))

    def timed(self, side: Function, copies: Sequence[tuple[Any, ...]], n_calls: int) -> list[float]:
        """Device microseconds of each call."""
        events = [(_event(), _event()) for _ in range(n_calls)]
        torch.cuda._sleep(int(min(200e-6 * n_calls, 60e-3) * CYCLES_PER_S))  # type: ignore[no-untyped-call]
        for i, (begin, end) in enumerate(events):
            torch.sum(self._flush, dim=0, out=self._sink)
            begin.record()
            side(*copies[i % len(copies)])
            end.record()
        torch.cuda.synchronize()
        return [begin.elapsed_time(end) * 1e3 for begin, end in events]


def _event() -> torch.cuda.Event:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
