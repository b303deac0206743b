"""Effects: the children that run on the GPU for one problem: the referee, candidates, PyTorch. Owns their arena."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from weakref import WeakKeyDictionary

from kbtui.domain.candidate import source_sha
from kbtui.domain.codec import to_plain
from kbtui.domain.problem import Problem, ShapeRole
from kbtui.domain.verdict import Reason, Verdict
from kbtui.errors import EngineError
from kbtui.evaluation.baselines import COMPILED, LIBRARIES
from kbtui.evaluation.devices.triton_cache import copy_cache
from kbtui.evaluation.gate.clients import CandidateClient, RefereeClient
from kbtui.evaluation.process import SandboxPolicy, Worker, WorkerFailure, Zygote
from kbtui.evaluation.process.spares import AT_ONCE
from kbtui.evaluation.process.worker import READY_TIMEOUT_S

REFEREE_ROLE = "kbtui.evaluation.roles.referee"
CANDIDATE_ROLE = "kbtui.evaluation.roles.candidate"
BASELINE_ROLE = "kbtui.evaluation.roles.baseline"
_WARM_TIMEOUT_S = 60.0
#: A baseline that compiles, or tries its own configurations, gets so long for it once.
_COMPILE_TIMEOUT_S = 150.0
#: Share of the device's memory that inputs in two copies and the mailbox may take.
_ARENA_SHARE = 0.35

#: A spare is stopped in the middle of its first calls for as long as others are timed. To give it up then would end it
#: beside them, and a process with a GPU's memory takes the driver's time.
_SPARE_TIMEOUT_S = READY_TIMEOUT_S

#: What a check allocates: poisoned blocks, outputs, workspaces.
_RESERVED_ARENAS = 2

#: The incumbents of the screening and the measuring rung.
_MAX_KEPT = 2

CacheOf = Callable[[str], Path]


class OpponentError(Exception):
    """A side other than the candidate broke: nothing is said of the candidate."""


@dataclass(slots=True)
class Side:
    """One running child with its callable loaded. ``name``: a candidate's id, ``eager``, ``compile`` or ``first``."""

    name: str
    sha: str
    worker: Worker
    client: CandidateClient
    bound: str = ""
    nudged: bool = False
    n_blocks: int = 0

    def timed(self, n_calls: int, keep: int) -> list[float]:
        self.n_blocks += 1
        return self.client.timed(n_calls, keep, self._seed if self.nudged else "")

    def nudge_at(self, call: int) -> str:
        """The nudge under which this call of the last block ran; none where calls are not nudged."""
        return f"{self._seed}/{call}" if self.nudged else ""

    @property
    def _seed(self) -> str:
        return f"{self.sha[:8]}/{self.worker.pid}/{self.n_blocks}"


@dataclass(slots=True)
class Sides:
    """Starts and keeps the children of one open problem. After ``drop`` every Side is dead.

    ``nudges``: overwrite a part of the inputs between timed calls, so that an answer that was kept is wrong.
    ``compiling``: forks those that use torch.compile, which is imported there.
    """

    zygote: Zygote
    problem: Problem
    policy: SandboxPolicy
    cache_of: CacheOf
    memory_bytes: int
    call_timeout_s: float
    copies: int = 2
    nudges: bool = True
    compiling: Zygote | None = None
    _referee: Worker | None = None
    _arena: tuple[int, bytes] = (0, b"")
    _kept: dict[str, Side] = field(default_factory=dict)
    _n_spares: tuple[int, int] = (0, 0)
    #: By child, the handle of the arena that it has mapped.
    _sees: "WeakKeyDictionary[Worker, bytes]" = field(default_factory=WeakKeyDictionary)

    @property
    def referee(self) -> RefereeClient:
        """The living referee with its arena made. Raises RefereeError, UsageError is the caller's to make of it."""
        if self._referee is None or not self._referee.alive:
            self.drop()
            self._referee = self._start_referee()
            if self._n_spares[0]:
                self.spares(*self._n_spares)
        return RefereeClient(self._referee, self.problem.spec)

    def spares(self, size: int, at_once: int = AT_ONCE) -> None:
        """Keep so many children warm, the arena mapped; ``at_once`` of them warm up side by side."""
        self._n_spares = (size, at_once)
        self.zygote.pool(CANDIDATE_ROLE, self.policy, size, at_once=at_once, finish=self._make_ready)

    def candidate(self, name: str, source: str) -> Side:
        """A fresh child with the candidate loaded. Raises WorkerFailure."""
        worker = self._start(CANDIDATE_ROLE, self.policy)
        client = CandidateClient(worker, self.call_timeout_s)
        with _killed_on_failure(worker):
            client.load(source, str(self._own_cache(worker, source)))
        return Side(name, source_sha(source), worker, client, nudged=self.nudges)

    def baseline(self, name: str, n_threads: int = 1) -> Side:
        """What a problem is compared with, by its name in ``evaluation.baselines``. Raises OpponentError.

        ``n_threads``: processes that torch.compile may have; one will do where its cache is full.
        """
        compiles = name in COMPILED or name in LIBRARIES
        spec, shapes = self.problem.spec, self.problem.spec.shapes_of(ShapeRole.TUNE) if compiles else ()
        try:
            worker = self._start_compiling() if name in COMPILED else None
            worker = worker or self._start(BASELINE_ROLE, None)
            with _killed_on_failure(worker):
                worker.call(
                    "open",
                    timeout_s=_COMPILE_TIMEOUT_S if compiles else _WARM_TIMEOUT_S,
                    problem=to_plain(self.problem),
                    name=name,
                    shapes=[{"dims": [list(d) for d in s.dims], "dtype": spec.dtype_of(s)} for s in shapes],
                    n_threads=n_threads,
                )
        except WorkerFailure as failure:
            raise OpponentError(f"{name}: {failure}") from failure
        timeout_s = _COMPILE_TIMEOUT_S if compiles else self.call_timeout_s * 4
        return Side(name, name, worker, CandidateClient(worker, timeout_s))

    def kept(self, name: str, source: str) -> Side:
        """A child that stays warm between evaluations, for the incumbent of the low rungs. Raises OpponentError."""
        sha = source_sha(source)
        side = self._kept.get(sha)
        if side is not None and side.worker.alive:
            side.name = name
            self._kept[sha] = self._kept.pop(sha)  # the last that goes
            return side
        self.keep(self.opponent(name, source))
        return self._kept[sha]

    def opponent(self, name: str, source: str) -> Side:
        """A fresh child of a candidate verified before. Raises OpponentError."""
        try:
            return self.candidate(name, source)
        except WorkerFailure as failure:
            raise OpponentError(f"{name}: {failure}") from failure

    def keep(self, side: Side) -> None:
        """Take over a child that is, or may soon be, an incumbent; beyond two, who was not met for longest goes."""
        replaced = self._kept.pop(side.sha, None)
        if replaced is not None and replaced is not side:
            self.zygote.bury(replaced.worker)
        self._kept[side.sha] = side
        while len(self._kept) > _MAX_KEPT:
            self.zygote.bury(self._kept.pop(next(iter(self._kept))).worker)

    def keeps(self, side: Side) -> bool:
        return any(kept is side for kept in self._kept.values())

    def drop(self) -> None:
        """Kill every child of this problem."""
        for side in self._kept.values():
            side.worker.kill()
        self._kept.clear()
        if self._referee is not None:
            self._referee.kill()
            self._referee = None
        self._arena = (0, b"")
        self.zygote.drop_spares(CANDIDATE_ROLE, self.policy)

    def check_device(self) -> bool:
        """After a crash: whether the GPU still answers the referee. If not, the next use starts all over."""
        if self._referee is None or not self._referee.alive:
            return False
        sound = RefereeClient(self._referee, self.problem.spec, timeout_s=20.0).sound()
        if not sound:
            self.drop()
        return sound

    def looked_at(self, verdict: Verdict) -> Verdict:
        """The same, once the device was looked at if this failure may have cost us it."""
        if verdict.reason in (Reason.CRASHED, Reason.TIMED_OUT, Reason.HARNESS_FAILED):
            self.check_device()
        return verdict

    def _start(self, role: str, policy: SandboxPolicy | None) -> Worker:
        """A warm child that sees the arena."""
        _ = self.referee
        worker = self.zygote.spawn(role, sandbox=policy)
        while self._sees.get(worker, self._arena[1]) != self._arena[1]:
            self.zygote.bury(worker)  # a spare that sees the arena of a referee that is gone
            worker = self.zygote.spawn(role, sandbox=policy)
        if worker not in self._sees:
            with _killed_on_failure(worker):
                self._show_arena(worker, CandidateClient(worker, self.call_timeout_s))
        return worker

    def _start_compiling(self) -> Worker | None:
        """A child that has torch.compile imported and sees the arena; None where there is none to be had."""
        if self.compiling is None:
            return None
        _ = self.referee
        try:
            worker = self.compiling.spawn(BASELINE_ROLE, sandbox=None)
            with _killed_on_failure(worker):
                self._show_arena(worker, CandidateClient(worker, self.call_timeout_s))
        except (WorkerFailure, EngineError):
            return None
        return worker

    def _make_ready(self, spare: Worker) -> None:
        """In the thread of whoever warms spares: poisoned blocks and outputs take as much as some arenas."""
        client = CandidateClient(spare, self.call_timeout_s, _SPARE_TIMEOUT_S)
        self._show_arena(spare, client)
        client.reserve(_RESERVED_ARENAS * self._arena[0])

    def _show_arena(self, worker: Worker, client: CandidateClient) -> None:
        """Without an arena there is nothing to be done yet."""
        n_bytes, handle = self._arena
        if handle:
            client.warm()
            client.map_arena(n_bytes, handle)
            self._sees[worker] = handle

    def _start_referee(self) -> Worker:
        """A referee with the problem open and the arena made."""
        worker = self.zygote.spawn(REFEREE_ROLE, sandbox=None)
        client = RefereeClient(worker, self.problem.spec)
        with _killed_on_failure(worker):
            client.open(self.problem)
            self._arena = client.make_arena(self._fitting_bytes(client))
        return worker

    def _fitting_bytes(self, client: RefereeClient) -> int:
        shapes = self.problem.spec.shapes
        needed = client.bytes_needed(shapes, self.copies)
        if needed > _ARENA_SHARE * self.memory_bytes and self.copies > 1:
            self.copies = 1
            needed = client.bytes_needed(shapes, 1)
        return needed

    def _own_cache(self, worker: Worker, source: str) -> Path:
        """The candidate's compiled kernels, copied where only its child reads them."""
        mine = worker.scratch / "triton"
        mine.mkdir(parents=True, exist_ok=True)
        copy_cache(self.cache_of(source), mine, texts=False)
        return mine


@contextlib.contextmanager
def _killed_on_failure(worker: Worker) -> Iterator[None]:
    try:
        yield
    except BaseException:
        worker.kill()
        raise
