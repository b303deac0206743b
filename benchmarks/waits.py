"""What one thread of the engine waited for, by call, and how a GPU's idle share splits over it. Effects: patches calls.

NVML gives a GPU's busy share of each sixth of a second, which is shorter than no phase of a candidate: so the busy
share of each phase is fitted, by least squares between 0 and 1, to what the samples say of windows that hold several.
"""

import bisect
import contextlib
import itertools
import statistics
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from kbtui.evaluation.devices import cuda_sides
from kbtui.evaluation.nvml import Nvml
from kbtui.evaluation.process import Worker, Zygote
from kbtui.evaluation.process.spares import Spares
from kbtui.evaluation.process.worker import Reply

ELSEWHERE = "between calls"
#: By the beginning of a call's name.
PHASES = {
    "candidate.timed": "timed, and warmed up for it",
    "candidate.warm_up": "timed, and warmed up for it",
    "candidate.": "the candidate's child is checked",
    "referee.": "the referee prepares and judges",
    "Zygote.": "a child is waited for, or the dead",
    "Spares.": "a child is waited for, or the dead",
}
_FIT_ROUNDS = 2000


def phase_of(name: str) -> str:
    return next((phase for beginning, phase in PHASES.items() if name.startswith(beginning)), ELSEWHERE)


@dataclass(frozen=True, slots=True)
class Interval:
    """Seconds on time.time."""

    phase: str
    begin: float
    end: float


@dataclass
class Trace:
    """Seconds the thread that made it waited for each call; what other threads waited for is marked ``(beside)``.

    ``checks``: seconds of a candidate's first, second ... check. ``intervals``: this thread's waits, in order.
    """

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    calls: Counter[str] = field(default_factory=Counter)
    checks: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    intervals: list[Interval] = field(default_factory=list)
    _n_checks: int = 0
    _inside: int = 0
    _mine: int = field(default_factory=threading.get_ident)

    @contextlib.contextmanager
    def of_calls(self) -> Iterator[None]:
        """While this is entered every call into a child is counted, and what else a candidate waits for."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._of_worker())
            for owner, name in (
                (Zygote, "spawn"), (Zygote, "_await_burials"), (Spares, "hold"), (Spares, "_warmed"),
                (Spares, "_forked"), (Worker, "kill"), (Nvml, "read"), (cuda_sides, "copy_cache"),
            ):  # fmt: skip
                stack.enter_context(self._of(owner, name))
            yield

    def timed(self, name: str, call: Callable[[], Any]) -> Any:
        """What ``call`` returns, its time added to ``name``."""
        mine, began = threading.get_ident() == self._mine, time.time()
        self._inside += mine
        try:
            return call()
        finally:
            self._inside -= mine
            self._add(name, began, time.time(), mine)

    def a_candidate(self, n: int) -> dict[str, list[float]]:
        """[seconds, calls] a candidate by method, dearest first."""
        ranked = sorted(self.seconds.items(), key=lambda item: -item[1])
        return {name: [round(s / n, 4), round(self.calls[name] / n, 2)] for name, s in ranked}

    def by_check(self) -> list[float]:
        """Mean seconds of a candidate's first check, of its second, and so on."""
        return [round(statistics.fmean(self.checks[i]), 4) for i in sorted(self.checks)]

    def _add(self, name: str, began: float, ended: float, mine: bool) -> None:
        name = name if mine else f"{name} (beside)"
        self.seconds[name] += ended - began
        self.calls[name] += 1
        if not mine:
            return
        if not self._inside:
            self.intervals.append(Interval(phase_of(name), began, ended))
        if name == "candidate.load":
            self._n_checks = 0
        elif name == "candidate.check":
            self.checks[self._n_checks].append(ended - began)
            self._n_checks += 1

    def _add_laps(self, laps: dict[str, list[float]]) -> None:
        """What a spare's warming was made of, as it tells before it is given a candidate."""
        for lap, (wall_s, own_s) in laps.items():
            for name, seconds in ((f"warming: {lap} (beside)", wall_s), (f"warming: {lap}, own CPU (beside)", own_s)):
                self.seconds[name] += seconds
                self.calls[name] += 1

    @contextlib.contextmanager
    def _of_worker(self) -> Iterator[None]:
        original = Worker.call

        def call(worker: Any, method: str, **how: Any) -> Reply:
            name = f"{worker.birth.role.rpartition('.')[2]}.{method}"
            found: Reply = self.timed(name, lambda: original(worker, method, **how))
            if method == "warm" and isinstance(found.value, dict):
                self._add_laps(found.value)
            return found

        Worker.call = call  # type: ignore[method-assign, assignment]
        try:
            yield
        finally:
            Worker.call = original  # type: ignore[method-assign]

    @contextlib.contextmanager
    def _of(self, owner: Any, name: str) -> Iterator[None]:
        original, where = getattr(owner, name), owner.__name__.rpartition(".")[2]

        def timed(*args: Any, **how: Any) -> Any:
            return self.timed(f"{where}.{name}", lambda: original(*args, **how))

        setattr(owner, name, timed)
        try:
            yield
        finally:
            setattr(owner, name, original)


class Utilisation:
    """The GPU's busy share while this is entered, from NVML's own samples (one each sixth of a second or so)."""

    def __init__(self, uuid: str | None) -> None:
        self._uuid, self._ended = uuid, threading.Event()
        self.samples: dict[int, int] = {}

    def __enter__(self) -> "Utilisation":
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def idle_share(self) -> float | None:
        return round(1 - statistics.fmean(self.samples.values()) / 100, 3) if self.samples else None

    def _watch(self) -> None:
        if self._uuid is None:
            return
        import pynvml

        pynvml.nvmlInit()
        handle = pynvml.nvmlDeviceGetHandleByUUID(self._uuid.encode())
        began_us = time.time() * 1e6
        while not self._ended.wait(1.0):
            with contextlib.suppress(pynvml.NVMLError):
                _, taken = pynvml.nvmlDeviceGetSamples(handle, pynvml.NVML_GPU_UTILIZATION_SAMPLES, int(began_us))
                self.samples |= {s.timeStamp: s.sampleValue.uiVal for s in taken if s.timeStamp > began_us}


def idle_split(intervals: Sequence[Interval], samples: dict[int, int]) -> dict[str, dict[str, float]]:
    """By phase: its share of the wall time, the GPU's busy share in it (fitted), and the idle share it accounts for.

    ``samples``: microseconds on time.time at which a window ended, and its busy share in per cent.
    """
    ends = sorted(samples)
    phases = sorted({i.phase for i in intervals} | {ELSEWHERE})
    rows = [_shares(intervals, a / 1e6, b / 1e6, phases) for a, b in itertools.pairwise(ends)]
    if not rows:
        return {}
    busy = fitted(rows, [samples[end] / 100 for end in ends[1:]])
    wall = [statistics.fmean(row[i] for row in rows) for i in range(len(phases))]
    return {
        phase: {"wall_share": round(w, 3), "busy_share": round(b, 3), "idle_share": round(w * (1 - b), 3)}
        for phase, w, b in sorted(zip(phases, wall, busy, strict=True), key=lambda found: -found[1] * (1 - found[2]))
    }


def _shares(intervals: Sequence[Interval], begin: float, end: float, phases: Sequence[str]) -> list[float]:
    """What part of a window each phase takes; ``intervals`` do not overlap and are in order."""
    taken = dict.fromkeys(phases, 0.0)
    for interval in intervals[bisect.bisect_left(intervals, begin, key=lambda i: i.end) :]:
        if interval.begin >= end:
            break
        taken[interval.phase] += (min(end, interval.end) - max(begin, interval.begin)) / (end - begin)
    taken[ELSEWHERE] += 1 - sum(taken.values())
    return [taken[p] for p in phases]


def fitted(rows: Sequence[Sequence[float]], values: Sequence[float]) -> list[float]:
    """The x between 0 and 1 whose products with ``rows`` come closest to ``values``, by descent along one at a time."""
    n = len(rows[0])
    products = [[sum(r[i] * r[j] for r in rows) for j in range(n)] for i in range(n)]
    towards = [sum(r[i] * v for r, v in zip(rows, values, strict=True)) for i in range(n)]
    x = [0.5] * n
    for _ in range(_FIT_ROUNDS):
        for i in (i for i in range(n) if products[i][i] > 0):
            step = (towards[i] - sum(p * y for p, y in zip(products[i], x, strict=True))) / products[i][i]
            x[i] = min(1.0, max(0.0, x[i] + step))
    return x
