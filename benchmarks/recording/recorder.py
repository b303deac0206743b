"""Has candidates climb side by side, asks ahead for more, and keeps what comes of it. Effects: threads, the device."""

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from statistics import median

from benchmarks.recording.asker import Asker
from benchmarks.recording.climber import Climb, Climber
from benchmarks.recording.recording import Recording
from benchmarks.recording.speeds import speed_of
from kbtui.domain.candidate import Origin, Proposal, source_sha
from kbtui.domain.evaluation import ProblemReport
from kbtui.domain.pool import PoolCandidate
from kbtui.domain.problem import Problem
from kbtui.engine.ports import Device, Generator
from kbtui.evaluation.devices.cuda import CudaDevice

#: Questions are asked ahead until so many answers wait; they compile meanwhile.
AHEAD = 6
#: Who was lately finished tells how long the next one takes.
LATELY = 5


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A climb and when it was begun (time.monotonic)."""

    climb: Climb
    began: float


@dataclass(slots=True)
class Recorder:
    """Puts questions and evaluates the answers until the time is over, ``at_once`` of them side by side."""

    device: Device
    problem: Problem
    generators: dict[str, Generator]
    recording: Recording
    report: ProblemReport
    say: Callable[[str], None]
    at_once: int = 1
    took_s: list[float] = field(default_factory=list)
    _under_way: "dict[Future[PoolCandidate], UnderWay]" = field(default_factory=dict)
    _asker: Asker = field(init=False)
    _climber: Climber = field(init=False)

    def __post_init__(self) -> None:
        family, spec = self.report.family, self.device.spec
        self._asker = Asker(self.problem, family, spec, self.generators, self.recording)
        self._climber = Climber(self.device, self.problem, self.recording, beside_others=self.at_once > 1)

    def run(self, n_candidates: int, left_s: Callable[[], float]) -> None:
        """At most this many in all; none is begun that is not likely to be finished in the time left."""
        with ThreadPoolExecutor(self.at_once) as threads:
            while self._begin(threads, n_candidates, left_s) or self._under_way:
                for future in wait(self._under_way, return_when=FIRST_COMPLETED).done:
                    self._finish(future)

    def _begin(self, threads: ThreadPoolExecutor, n_candidates: int, left_s: Callable[[], float]) -> bool:
        """Have as many under way as there may be; whether any is that was not."""
        before = len(self._under_way)
        while len(self._under_way) < self.at_once:
            place = len(self.recording.candidates) + len(self._under_way)
            if place >= n_candidates or left_s() <= self._likely_s() or not self._plan():
                break
            waiting = self._waiting()
            for _, proposal in waiting[:AHEAD]:
                compile_ahead(self.device, proposal.source)
            begun = UnderWay(Climb(place, *waiting[0]), time.monotonic())
            self._under_way[threads.submit(self._climber.climbed, begun.climb)] = begun
        return len(self._under_way) > before

    def _finish(self, future: "Future[PoolCandidate]") -> None:
        begun = self._under_way.pop(future)
        candidate = future.result()
        self.recording.append("candidate", candidate)
        self.took_s.append(time.monotonic() - begun.began)
        self.say(self._line(candidate, self.took_s[-1]))

    def _waiting(self) -> list[tuple[str | None, Proposal]]:
        """Planned, and not begun."""
        begun = {source_sha(u.climb.proposal.source) for u in self._under_way.values()}
        return [p for p in self.recording.planned if source_sha(p[1].source) not in begun]

    def _likely_s(self) -> float:
        """What another takes, by the last ones here. One that takes longer is lost where the call is killed."""
        return median(self.took_s[-LATELY:]) if self.took_s else 0.0

    def _plan(self) -> bool:
        """Have answers wait, so that they compile meanwhile; False where nobody has anything left to say.

        The first kernel comes before all, but after the drafts were asked for.
        """
        recording = self.recording
        while len(self._waiting()) < AHEAD and self._asker.ask():
            pass
        if not recording.candidates and not self._under_way:
            assert self.problem.kernel_source is not None
            first = Proposal(self.problem.kernel_source, Origin("seed", "first_kernel"), "first", "the first kernel")
            recording.planned = [(None, first), *(p for p in recording.planned if p[1].source != first.source)]
        return bool(self._waiting())

    def _line(self, candidate: PoolCandidate, took_s: float) -> str:
        last, speed = candidate.highest, speed_of(candidate)
        ended = (
            f"{speed:.2f}x over the first" if speed else f"{last.outcome.verdict.reason}: {last.outcome.verdict.detail}"
        )
        n = len(self.recording.candidates)
        by_rung = " + ".join(f"{r.outcome.wall_s:.1f}" for r in candidate.rungs)
        return f"{self.problem.spec.name} {n}: {candidate.summary[:60]}: {ended[:90]} ({took_s:.1f} s: {by_rung})"


def compile_ahead(device: Device, source: str) -> None:
    """For every stage of the gate where compiling is what an evaluation would wait for."""
    match device:
        case CudaDevice():
            device.prefetch(source, (1, 4))
        case _:
            device.prefetch(source)
