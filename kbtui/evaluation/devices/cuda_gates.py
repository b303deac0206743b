"""Effects: puts many candidates of one problem through the whole gate, each growing old while others are gated.

The gate's last question is for a process that has lived for seconds. Asked one by one, every candidate costs that
wait; here its process stands still meanwhile, and is asked once it is as old as the gate may ask for.
"""

import contextlib
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from kbtui.domain.evaluation import EvaluationRequest
from kbtui.domain.measurement import LiveSample
from kbtui.domain.rung import WHOLE_GATE
from kbtui.domain.verdict import Proof, Verdict
from kbtui.errors import EngineError
from kbtui.evaluation.devices.cuda_evaluation import Evaluation
from kbtui.evaluation.devices.cuda_opened import OpenedProblem
from kbtui.evaluation.devices.cuda_sides import Side
from kbtui.evaluation.gate.clients import Caller, RefereeError
from kbtui.evaluation.gate.plan import STAGES
from kbtui.evaluation.gate.runner import AGE_S, drawn_age_s, run_aged, run_stage
from kbtui.evaluation.process import WorkerFailure

_LAST = max(STAGES)


@dataclass(frozen=True, slots=True)
class Gated:
    """A candidate's verdict. ``age_s``: how old its process was by its last answer; None where it did not get so far,
    or where the gate asked it in its ordinary way."""

    name: str
    verdict: Verdict
    age_s: float | None = None


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Passed all but age. ``since``: when it first ran; ``referee``: in whose arena its inputs lie."""

    name: str
    source: str
    side: Side
    since: float
    referee: Caller
    verdict: Verdict


class WholeGates:
    """One problem's. ``alone``: nobody times anything on this GPU meanwhile, so that its lock is left alone and
    several of these may run side by side."""

    def __init__(self, opened: OpenedProblem, seed: int = 0, alone: bool = False) -> None:
        self._opened, self._seed, self._alone = opened, seed, alone
        self._waiting: deque[_Waiting] = deque()

    def put(self, name: str, source: str) -> list[Gated]:
        """Begin with one; returns what is known by now, of it or of those before it."""
        verdict = self._begun(name, source)
        old = [self._asked(w) for w in self._old()]
        return [Gated(name, verdict), *old] if verdict is not None else old

    def finish(self) -> list[Gated]:
        """Wait for all that were begun, as long as the gate draws for each."""
        found = []
        while self._waiting:
            found.append(self._asked(self._waiting.popleft()))
        return found

    def _begun(self, name: str, source: str) -> Verdict | None:
        """None: all that is left is to grow old."""
        static = self._opened.static(source)
        if not static.ok:
            return static
        for future in self._opened.compile(source, STAGES):
            if not (report := future.result()).verdict.ok:
                return report.verdict
        with contextlib.suppress(RefereeError, EngineError, WorkerFailure), self._gpu():
            return self._gated(name, source)
        return self._anew(name, source)

    def _gated(self, name: str, source: str) -> Verdict | None:
        """Raises what is no verdict: a failure of ours, and a candidate that cannot be started."""
        sides, since = self._opened.sides, time.monotonic()
        side = sides.candidate(name, source)
        stays = False
        try:
            for stage in STAGES:
                verdict = run_stage(
                    sides.referee, side.client, self._opened.problem.spec, stage, self._seed, Proof.GPU, aged=False
                )
                if not verdict.ok:
                    side.worker.kill()  # before anything goes on: it may hold all of the memory
                    return sides.looked_at(verdict)
            side.client.release(everything=True)
            side.worker.pause()
            self._waiting.append(_Waiting(name, source, side, since, sides.referee.worker, verdict))
            stays = True
            return None
        finally:
            if not stays:
                side.worker.kill()

    def _old(self) -> Iterator[_Waiting]:
        while self._waiting and time.monotonic() - self._waiting[0].since >= _old_s():
            yield self._waiting.popleft()

    def _asked(self, waiting: _Waiting) -> Gated:
        verdict = None
        try:
            with contextlib.suppress(RefereeError, EngineError, WorkerFailure), self._gpu():
                verdict = self._aged(waiting)
                age_s = round(time.monotonic() - waiting.since, 1)
        finally:
            self._opened.zygote.bury(waiting.side.worker)
        if verdict is None:
            return Gated(waiting.name, self._anew(waiting.name, waiting.source))
        return Gated(waiting.name, verdict, age_s)

    def _aged(self, waiting: _Waiting) -> Verdict | None:
        """None where the arena that it sees is gone with its referee."""
        sides, spec = self._opened.sides, self._opened.problem.spec
        if sides.referee.worker is not waiting.referee:
            return None
        waiting.side.worker.go_on()
        aged_at = waiting.since + drawn_age_s(Proof.GPU)
        verdict = run_aged(sides.referee, waiting.side.client, spec, _LAST, self._seed, Proof.GPU, aged_at=aged_at)
        if verdict.ok:
            return waiting.verdict
        waiting.side.worker.kill()  # as above
        return sides.looked_at(verdict)

    def _anew(self, name: str, source: str) -> Verdict:
        """In the ordinary way, which tells a failure of ours from the candidate's."""
        request = EvaluationRequest(name, source, WHOLE_GATE, self._seed, 0, None, None)
        return Evaluation(self._opened, request, _unwatched).run().outcome.verdict

    def _gpu(self) -> contextlib.AbstractContextManager[object]:
        return contextlib.nullcontext() if self._alone else self._opened.lock.held()


def _old_s() -> float:
    """The greatest age that the gate may ask for."""
    return AGE_S[Proof.GPU][1]


def _unwatched(_: LiveSample) -> None:
    """Nothing is timed here."""
