"""Effects: typed calls into the referee and into a candidate's child. Their failures stay apart: one side is ours."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kbtui.domain.codec import to_plain
from kbtui.domain.device import DeviceSpec
from kbtui.domain.problem import Problem, ProblemSpec, Shape
from kbtui.evaluation.family import Operation
from kbtui.evaluation.gate import told
from kbtui.evaluation.gate.tolerance import OutputErrors
from kbtui.evaluation.process.failures import WorkerFailure


class Answer(Protocol):
    @property
    def value(self) -> Any: ...

    @property
    def payload(self) -> bytes | None: ...


_WARM_TIMEOUT_S = 60.0


class Caller(Protocol):
    """What the clients need of a worker."""

    def call(self, method: str, *, timeout_s: float, payload: bytes | None = None, **params: Any) -> Answer: ...


class RefereeError(Exception):
    """The trusted side broke: never the candidate's fault."""

    def __init__(self, failure: WorkerFailure) -> None:
        super().__init__(str(failure))
        self.failure = failure


@dataclass(frozen=True, slots=True)
class Judgement:
    """What the referee found in the mailbox. ``modified``: arguments whose memory changed; ``same``: see ``judge``."""

    errors: tuple[OutputErrors, ...]
    modified: tuple[int, ...]
    same: bool | None


@dataclass(frozen=True, slots=True)
class RefereeClient:
    """The referee of one problem."""

    worker: Caller
    spec: ProblemSpec
    timeout_s: float = 120.0

    def open(self, problem: Problem) -> None:
        self._call("open", problem=to_plain(problem))

    def bytes_needed(self, shapes: Sequence[Shape], copies: int) -> int:
        first = self.spec.distributions[0]
        plain = [{**self._shape(s), "distribution": first} for s in shapes]
        return int(self._call("bytes_needed", shapes=plain, copies=copies).value)

    def make_arena(self, n_bytes: int) -> tuple[int, bytes]:
        """(bytes, handle) of device memory for inputs and mailbox."""
        answer = self._call("make_arena", n_bytes=n_bytes)
        return int(answer.value), answer.payload or b""

    def prepare(self, shape: Shape, distribution: str, seeds: Sequence[int]) -> dict[str, Any]:
        """Inputs in place, mailbox poisoned; returns what a candidate binds."""
        answer = self._call("prepare", shape=self._shape(shape), distribution=distribution, seeds=list(seeds))
        prepared: dict[str, Any] = answer.value
        return prepared

    def refill(self, seeds: Sequence[int]) -> None:
        self._call("refill", seeds=list(seeds))

    def nudge(self, seed: int) -> None:
        """Other values in a part of the inputs that are bound."""
        self._call("nudge", seed=str(seed))

    def clear(self) -> None:
        self._call("clear")

    def judge(self, copy: int = 0, repeat: bool = False, during: str = "") -> Judgement:
        found = self._call("judge", copy=copy, repeat=repeat, during=during).value
        return Judgement(tuple(OutputErrors(**e) for e in found["errors"]), tuple(found["modified"]), found["same"])

    def sound(self) -> bool:
        try:
            self._call("sound")
        except RefereeError:
            return False
        return True

    def release(self) -> None:
        self._call("release")

    def operations(self, shape: Shape) -> tuple[Operation, ...]:
        found = self._call("operations", shape=self._shape(shape), distribution=self.spec.distributions[0]).value
        return tuple(
            Operation(o["name"], tuple(map(tuple, o["inputs"])), tuple(o["output"]), tuple(o["dims"])) for o in found
        )

    def _shape(self, shape: Shape) -> dict[str, Any]:
        return {"dims": [list(d) for d in shape.dims], "dtype": self.spec.dtype_of(shape)}

    def _call(self, method: str, **params: Any) -> Answer:
        try:
            return self.worker.call(method, timeout_s=self.timeout_s, **params)
        except WorkerFailure as failure:
            raise RefereeError(failure) from failure


@dataclass(frozen=True, slots=True)
class CandidateClient:
    """One candidate's child (or the baseline's, which answers the same calls). Calls raise WorkerFailure.

    ``timeout_s`` bounds one call; a candidate that hangs costs as much.
    """

    worker: Caller
    timeout_s: float
    load_timeout_s: float = 20.0

    def warm(self) -> None:
        """Where a pool has done it, this costs nothing."""
        self.worker.call("warm", timeout_s=max(_WARM_TIMEOUT_S, self.load_timeout_s))

    def map_arena(self, n_bytes: int, handle: bytes) -> None:
        self.worker.call("map_arena", timeout_s=self.load_timeout_s, payload=handle, n_bytes=n_bytes)

    def reserve(self, n_bytes: int) -> None:
        """Device memory for its outputs and workspaces, kept at hand as far as there is much of it."""
        self.worker.call("reserve", timeout_s=self.load_timeout_s, n_bytes=n_bytes)

    def pretend(self, chip: DeviceSpec) -> None:
        """Under the interpreter, before ``load``: what the candidate sees of a GPU."""
        self.worker.call("pretend", timeout_s=self.load_timeout_s, chip=to_plain(chip))

    def load(self, source: str, cache: str = "") -> None:
        """``cache``: directory in which its kernels lie compiled, empty under the interpreter."""
        self.worker.call("load", timeout_s=self.load_timeout_s, payload=source.encode(), cache=cache)

    def bind(self, prepared: dict[str, Any]) -> None:
        """Take what ``RefereeClient.prepare`` returned."""
        self.worker.call("bind", timeout_s=self.load_timeout_s, **prepared)

    def check(self, copy: int, guard: bool, allowed: Sequence[str]) -> told.CheckReport:
        found = self.worker.call("check", timeout_s=self.timeout_s, copy=copy, guard=guard, allowed=list(allowed))
        return told.check_report(found.value)

    def no_op(self, copy: int = 0) -> bool:
        """Whether outputs of the right kind came back although no kernel ran."""
        return told.returned(self.worker.call("no_op", timeout_s=self.timeout_s, copy=copy).value)

    def repeat(self, n_calls: int, at_most_s: float) -> int:
        """Call it so often, its answers left unread; stops after ``at_most_s``. Returns how often it was called."""
        found = self.worker.call(
            "repeat", timeout_s=self.timeout_s + 10 * at_most_s, n_calls=n_calls, at_most_s=at_most_s
        )
        return told.count(found.value, "repeat")

    def warm_up(self, at_least_s: float) -> float:
        found = self.worker.call("warm_up", timeout_s=self.timeout_s, at_least_s=at_least_s)
        return told.seconds(found.value, "warm_up")

    def timed(self, n_calls: int, keep: int, seed: str = "") -> list[float]:
        """``seed``: of the nudges, another for each call (see ``roles.nudge``); none without one."""
        samples = self.worker.call("timed", timeout_s=self.timeout_s, n_calls=n_calls, keep=keep, seed=seed).value
        return told.durations_us(samples, n_calls, "timed")

    def back_to_back(self, n_calls: int) -> tuple[float, float]:
        found = self.worker.call("back_to_back", timeout_s=self.timeout_s, n_calls=n_calls).value
        host_us, device_us = told.durations_us(found, 2, "back_to_back")
        return host_us, device_us

    def release(self, everything: bool = False) -> None:
        """Give memory back: where much of it lies idle, or all of it."""
        self.worker.call("release", timeout_s=self.timeout_s, everything=everything)
