"""Counts what the sampled programs of one launch do. Pure bookkeeping; numpy only.

Loops are sampled: of a long loop the first few iterations and the last run, and what they do counts for those left
out. Weights multiply in nested loops.
"""

import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, SupportsIndex

import numpy as np

from kbtui.evaluation.modelled.coalesce import Addresses, Requests, requests_of
from kbtui.evaluation.modelled.trace import DotTrace, LaunchTrace, TensorTraffic

#: Iterations of a loop that really run: the first ones, which show reuse between neighbours, and the last.
SAMPLED_FIRST = 3
#: Operations a launch's sampled programs may execute before the tracer gives up.
MAX_OPERATIONS = 60_000


class TraceLimitError(Exception):
    """The kernel does more than the tracer follows (a ``while`` loop, or far too many operations)."""


@dataclass(slots=True)
class _Touched:
    """One tensor as one program touches it; sector counts are weighted by the loops left out."""

    load_bytes: float = 0.0
    load_sectors: float = 0.0
    unique_load_sectors: float = 0.0
    near_load_sectors: float = 0.0
    store_bytes: float = 0.0
    store_sectors: float = 0.0
    unique_store_sectors: float = 0.0
    atomics: float = 0.0
    last: Addresses = field(default_factory=lambda: np.empty(0, np.uint64))
    seen: Addresses = field(default_factory=lambda: np.empty(0, np.uint64))


@dataclass(slots=True)
class _Program:
    """Counts of one sampled program."""

    touched: dict[int, _Touched] = field(default_factory=dict)
    dots: dict[tuple[int, int, int, str, str], float] = field(default_factory=dict)
    phases: float = 0.0
    phase_bytes: float = 0.0
    overlapped_phases: float = 0.0
    requests: float = 0.0
    vector_weight: float = 0.0
    load_bytes: float = 0.0
    reductions: float = 0.0
    alu_ops: float = 0.0
    sfu_ops: float = 0.0
    trips: float = 1.0


@dataclass(slots=True)
class _Loop:
    """A loop that is running: how many stages the compiler pipelines it over, and its memory phases so far."""

    stages: int
    phases: float = 0.0


@dataclass(frozen=True, slots=True)
class Extent:
    """A tensor's storage: its number in the call and the addresses it covers."""

    tensor: int
    start: int
    size_bytes: int


class LaunchRecorder:
    """Fed by the interpreter while it runs the sampled programs of one launch."""

    def __init__(self, kernel: str, grid: tuple[int, int, int], warps: int, stages: int, extents: list[Extent]) -> None:
        self.kernel, self.grid, self.num_warps, self.num_stages = kernel, grid, warps, stages
        self._extents = sorted(extents, key=lambda e: e.start)
        self._starts = np.array([e.start for e in self._extents], np.uint64)
        self._programs: list[_Program] = []
        self._weights: list[float] = []
        self._loops: list[_Loop] = []
        self._phase_open = False
        self._operations = 0

    # -- program and loop structure ------------------------------------------------------------------------------

    def begin_program(self) -> None:
        self._programs.append(_Program())
        self._weights, self._loops, self._phase_open = [], [], False

    @property
    def _now(self) -> _Program:
        return self._programs[-1]

    @property
    def weight(self) -> float:
        """How many executions of the program's operation now running this one stands for."""
        return math.prod(self._weights)

    def loop(self, *bounds: SupportsIndex, stages: int = 1, unrolled: bool = False) -> Iterator[int]:
        """The iterations of ``range(*bounds)`` that are sampled, each weighted for those left out.

        The loads of an unrolled loop are all issued before the first is waited for.
        """
        steps = range(*(operator.index(b) for b in bounds))
        sampled, weights = _sampled(len(steps))
        self._now.trips = max(self._now.trips, self.weight * len(steps))
        self._loops.append(_Loop(stages))
        try:
            for position, weight in zip(sampled, weights, strict=True):
                self._weights.append(weight)
                self._phase_open = self._phase_open and unrolled
                try:
                    yield steps[position]
                finally:
                    self._weights.pop()
        finally:
            self._end_loop(self._loops.pop())

    def _end_loop(self, loop: _Loop) -> None:
        """A loop pipelined over s stages waits for one phase in about s - 0.5; others leave theirs to the outer."""
        self.barrier()
        if loop.stages > 1:
            self._now.overlapped_phases += loop.phases * (1 - 1 / (loop.stages - 0.5))
        elif self._loops:
            self._loops[-1].phases += loop.phases

    def barrier(self) -> None:
        """The next load begins a new phase: the program waits for what it loaded before."""
        self._phase_open = False

    def tick(self) -> None:
        self._operations += 1
        if self._operations > MAX_OPERATIONS:
            raise TraceLimitError(f"{self.kernel} does more than {MAX_OPERATIONS:,} operations in the programs sampled")

    # -- operations ----------------------------------------------------------------------------------------------

    def load(self, addresses: Any, mask: Any, item_bytes: int) -> None:
        requests = requests_of(addresses, mask, item_bytes, self.num_warps * 32)
        touched, weight = self._tensor_at(requests), self.weight
        touched.load_bytes += weight * requests.n_bytes
        touched.load_sectors += weight * requests.n_sectors
        near = int(np.isin(requests.sectors, touched.last, assume_unique=True).sum()) if touched.last.size else 0
        touched.near_load_sectors += weight * (near + requests.n_sectors - requests.sectors.size)
        touched.unique_load_sectors += weight * self._new_sectors(touched, requests)
        touched.last = requests.sectors
        self._request(requests, weight)
        if not self._phase_open:
            self._now.phases += weight
            if self._loops:
                self._loops[-1].phases += weight
        self._phase_open = True
        self._now.load_bytes += weight * requests.n_bytes

    def store(self, addresses: Any, mask: Any, item_bytes: int) -> None:
        requests = requests_of(addresses, mask, item_bytes, self.num_warps * 32)
        touched, weight = self._tensor_at(requests), self.weight
        touched.store_bytes += weight * requests.n_bytes
        touched.store_sectors += weight * requests.n_sectors
        touched.unique_store_sectors += weight * self._new_sectors(touched, requests)
        self._request(requests, weight)

    def atomic(self, addresses: Any, mask: Any, item_bytes: int) -> None:
        requests = requests_of(addresses, mask, item_bytes, self.num_warps * 32)
        touched, weight = self._tensor_at(requests), self.weight
        touched.atomics += weight * requests.n_bytes / item_bytes
        touched.store_bytes += weight * requests.n_bytes
        touched.store_sectors += weight * requests.n_sectors
        touched.unique_store_sectors += weight * self._new_sectors(touched, requests)
        self._request(requests, weight)

    def dot(self, m: int, n: int, k: int, dtype: str, precision: str) -> None:
        key = (m, n, k, dtype, precision)
        self._now.dots[key] = self._now.dots.get(key, 0.0) + self.weight
        if self._loops:
            self._loops[-1].stages = max(self._loops[-1].stages, self.num_stages)

    def elementwise(self, n_elements: int, alu: float, sfu: float = 0.0) -> None:
        """Every thread executes a block's operation, even where the block has fewer elements than threads."""
        self.tick()
        if n_elements > 1:
            lanes = max(n_elements, self.num_warps * 32) * self.weight
            self._now.alu_ops += alu * lanes
            self._now.sfu_ops += sfu * lanes

    def reduction(self, n_elements: int) -> None:
        self.elementwise(n_elements, 1.0)
        self._now.reductions += self.weight
        self.barrier()

    # -- results -------------------------------------------------------------------------------------------------

    def trace(self, sampled: int) -> LaunchTrace:
        """Means over the first ``sampled`` programs; one more, where there is one, is the first's neighbour."""
        programs = self._programs[:sampled]
        phases = _mean([p.phases for p in programs])
        loads = _mean([p.load_bytes for p in programs])
        moved = sum(p.load_bytes for p in programs) + sum(t.store_bytes for p in programs for t in p.touched.values())
        overlapped = _mean([p.overlapped_phases for p in programs])
        return LaunchTrace(
            kernel=self.kernel,
            grid=self.grid,
            num_warps=self.num_warps,
            num_stages=self.num_stages,
            tensors=self._traffic(programs),
            dots=_mean_dots(programs),
            phases=phases,
            phase_bytes=loads / phases if phases else 0.0,
            overlap=phases / (phases - overlapped) if phases else 1.0,
            requests=_mean([p.requests for p in programs]),
            vector_bytes=sum(p.vector_weight for p in programs) / moved if moved else 4.0,
            reductions=_mean([p.reductions for p in programs]),
            alu_ops=_mean([p.alu_ops for p in programs]),
            sfu_ops=_mean([p.sfu_ops for p in programs]),
            local_trips=_mean([p.trips for p in programs]),
        )

    def _traffic(self, programs: list[_Program]) -> tuple[TensorTraffic, ...]:
        neighbour = self._programs[len(programs)] if len(self._programs) > len(programs) else None
        tensors = sorted({number for p in programs for number in p.touched})
        sizes = {e.tensor: float(e.size_bytes) for e in self._extents}
        return tuple(self._tensor_traffic(n, sizes.get(n, 0.0), programs, neighbour) for n in tensors)

    def _tensor_traffic(
        self, number: int, size_bytes: float, programs: list[_Program], neighbour: _Program | None
    ) -> TensorTraffic:
        each = [p.touched.get(number, _Touched()) for p in programs]
        share = 0.0
        if neighbour is not None and number in neighbour.touched and each[0].seen.size:
            share = np.isin(neighbour.touched[number].seen, each[0].seen).mean().item()
        return TensorTraffic(
            tensor=number,
            size_bytes=size_bytes,
            load_bytes=_mean([t.load_bytes for t in each]),
            load_sectors=_mean([t.load_sectors for t in each]),
            unique_load_sectors=_mean([t.unique_load_sectors for t in each]),
            near_load_sectors=_mean([t.near_load_sectors for t in each]),
            store_bytes=_mean([t.store_bytes for t in each]),
            store_sectors=_mean([t.store_sectors for t in each]),
            unique_store_sectors=_mean([t.unique_store_sectors for t in each]),
            neighbour_share=share,
            atomics=_mean([t.atomics for t in each]),
        )

    def _request(self, requests: Requests, weight: float) -> None:
        self.tick()
        self._now.requests += weight * requests.n_requests
        self._now.vector_weight += weight * requests.n_bytes * requests.vector_bytes

    def _tensor_at(self, requests: Requests) -> _Touched:
        number = -1
        if requests.sectors.size and self._extents:
            # The first sector may begin a few bytes before the tensor does: look up its end.
            address = (requests.sectors[-1] << np.uint64(5)) + np.uint64(31)
            number = self._extents[max(int(np.searchsorted(self._starts, address, side="right")) - 1, 0)].tensor
        return self._now.touched.setdefault(number, _Touched())

    @staticmethod
    def _new_sectors(touched: _Touched, requests: Requests) -> int:
        if touched.seen.size == 0:
            touched.seen = requests.sectors
            return int(requests.sectors.size)
        fresh = requests.sectors[~np.isin(requests.sectors, touched.seen, assume_unique=True)]
        if fresh.size:
            touched.seen = np.union1d(touched.seen, fresh)
        return int(fresh.size)


def _sampled(n_steps: int) -> tuple[list[int], list[float]]:
    """Positions of a loop that run, and how many iterations each stands for; the weights add up to ``n_steps``."""
    if n_steps <= SAMPLED_FIRST + 1:
        return list(range(n_steps)), [1.0] * n_steps
    share = (n_steps - 1) / SAMPLED_FIRST
    return [*range(SAMPLED_FIRST), n_steps - 1], [share] * SAMPLED_FIRST + [1.0]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _mean_dots(programs: list[_Program]) -> tuple[DotTrace, ...]:
    keys = sorted({key for p in programs for key in p.dots})
    return tuple(DotTrace(*key, count=_mean([p.dots.get(key, 0.0) for p in programs])) for key in keys)
