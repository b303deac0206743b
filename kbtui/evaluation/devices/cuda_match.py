"""Effects: plays a candidate against its opponents on the GPU, in turns, in one set of processes."""

import contextlib
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from kbtui.domain.measurement import LiveSample
from kbtui.domain.problem import ProblemSpec, Shape
from kbtui.domain.verdict import Reason
from kbtui.evaluation.devices.cuda_sides import OpponentError, Side, Sides
from kbtui.evaluation.gate.runner import judged_fault, told_fault
from kbtui.evaluation.gate.tolerance import Fault
from kbtui.evaluation.measure.loop import NEVER, PairSamples, retaken, time_pair
from kbtui.evaluation.measure.record import MatchLog, ProcessLog
from kbtui.evaluation.measure.schedule import calls_per_block
from kbtui.evaluation.process import WorkerFailure

#: Seconds of calls before anything is timed, the same for every side: what only one of them has had is a bias.
WARM_S = 0.01
#: Share of pairs, or of blocks alone, whose output is judged beside the last one's: a candidate may be honest at either
#: end.
LATE_ODDS = 0.15
_PROBE_CALLS = 4
#: By how much the engine's clock may run ahead of the child's events before one of them is called a liar: this part of
#: a call, and for a whole batch what a wake-up of either process costs at worst (the error of the test, stated).
CLOCK_SHARE, WAKE_UP_US = 0.05, 400.0
#: A batch lasts so long, microseconds, and twice as long at each further try before anybody is rejected.
_CLOCK_BATCH_US, _CLOCK_TRIES, _CLOCK_LONGER = 10_000.0, 3, 2

Trouble = Callable[[], str | None]
Tell = Callable[[LiveSample], None]
Stop = Callable[[], bool]


class FaultError(Exception):
    """The candidate was caught while it was timed."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.detail)
        self.fault = fault


@dataclass(slots=True)
class Match:
    """One candidate's process against its opponents' processes. ``trouble`` names what spoils a block taken now."""

    sides: Sides
    spec: ProblemSpec
    candidate: Side
    opponents: Sequence[Side]
    log: MatchLog
    max_pairs: int
    trouble: Trouble
    tell: Tell
    rng: random.Random
    judged: bool = True
    unstable: str | None = None
    _calls: dict[str, int] = field(default_factory=dict)
    _bound: str = ""
    _on: str = ""
    _last: "_Kept | None" = None

    def play(self, shapes: Sequence[Shape], passes: Sequence[int], stop: Stop) -> None:
        """Pairs on every shape up to each number in ``passes``, until ``stop`` says it is enough.

        ``judge_last`` is still to be called. Raises FaultError, WorkerFailure (the candidate's), OpponentError and
        RefereeError.
        """
        mine: ProcessLog = {o.name: {s.name: [] for s in shapes} for o in self.opponents}
        self.log.processes.append(mine)
        for n_pairs in passes:
            for shape in shapes:
                self._settle_on(shape)
                self._until(shape, mine, n_pairs)
            if stop():
                return

    def alone(self, shapes: Sequence[Shape], n_blocks: int) -> None:
        """Samples of the candidate with nobody to compare it with."""
        for shape in shapes:
            self._settle_on(shape)
            taken = self.log.alone.setdefault(shape.name, [])
            for _ in range(n_blocks):
                n_calls = self._calls[shape.name]
                kept = self.rng.randrange(n_calls)
                taken.extend(self.candidate.timed(n_calls, kept))
                self._keep(shape, kept)

    def end_to_end(self, shape: Shape) -> None:
        """Back-to-back time on the host's clock; and the engine's own clock against the child's. Raises FaultError."""
        self._settle_on(shape)
        host_us, _ = self.candidate.client.back_to_back(8)
        n_calls = max(4, min(400, round(_CLOCK_BATCH_US / max(host_us, 1.0))))
        self.log.end_to_end_us[shape.name] = self._against_own_clock(shape, n_calls)

    def _against_own_clock(self, shape: Shape, n_calls: int) -> float:
        """Batches of K and 4K calls: what a call costs by the engine's clock is their slope."""
        for _ in range(_CLOCK_TRIES):
            short_s, (_, short_us) = self._clocked(n_calls)
            long_s, (host_us, device_us) = self._clocked(4 * n_calls)
            slope_us = (long_s - short_s) * 1e6 / (3 * n_calls)
            events_us = (4 * device_us - short_us) / 3
            if clocks_agree(slope_us, events_us, device_us, 3 * n_calls):
                return host_us
            n_calls *= _CLOCK_LONGER
        told = f"{shape.name}: its events say {device_us:.1f} us a call, the engine's clock {slope_us:.1f} us"
        raise FaultError(Fault(Reason.CLOCKS_DISAGREE, told))

    def _clocked(self, n_calls: int) -> tuple[float, tuple[float, float]]:
        began = time.perf_counter()
        times = self.candidate.client.back_to_back(n_calls)
        return time.perf_counter() - began, times

    def _settle_on(self, shape: Shape) -> None:
        """Inputs in place, both sides bound and warm; then new values, which nobody has seen a result for."""
        if self._on == shape.name:
            return
        if self._bound != shape.name:
            self.bind(shape)
        for side in (self.candidate, *self.opponents):
            with self._as_its_own(side):
                side.client.warm_up(WARM_S)
        if shape.name not in self._calls:
            probe = self.candidate.timed(_PROBE_CALLS, NEVER)
            self._calls[shape.name] = calls_per_block(sorted(probe)[len(probe) // 2])
        self.sides.referee.refill([self._seed() for _ in range(self.sides.copies)])
        self._on = shape.name

    def bind(self, shape: Shape) -> None:
        """Inputs in place and both sides bound; what needs no quiet can be done before there is any."""
        self.judge_last()
        seeds = [self._seed() for _ in range(self.sides.copies)]
        prepared = self.sides.referee.prepare(shape, self.spec.distributions[0], seeds)
        self._on, self._bound = "", shape.name
        for side in (self.candidate, *self.opponents):
            with self._as_its_own(side):
                side.client.release()
                side.client.bind(prepared)

    @contextlib.contextmanager
    def _as_its_own(self, side: Side) -> Iterator[None]:
        """What a side does wrong is said of it and of no other."""
        try:
            yield
        except WorkerFailure as failure:
            if side is self.candidate:
                raise
            raise OpponentError(f"{side.name}: {failure}") from failure

    def _until(self, shape: Shape, mine: ProcessLog, n_pairs: int) -> None:
        for opponent in self.opponents:
            pairs = mine[opponent.name][shape.name]
            while len(pairs) < n_pairs:
                pair = self._pair(len(pairs), opponent, shape)
                self._keep(shape, pair.kept)
                pairs.append(pair)
                self._report(shape, opponent, pair, len(pairs))

    def _pair(self, index: int, opponent: Side, shape: Shape) -> PairSamples:
        n_calls = self._calls[shape.name]
        other = _Opponent(opponent)
        pair, why = retaken(lambda: time_pair(index, self.candidate, other, n_calls, self.rng), self.trouble)
        self.unstable = self.unstable or why
        return pair

    def _keep(self, shape: Shape, call: int) -> None:
        """This call of the last block left its output in the mailbox, to be judged there and then by chance."""
        self._last = _Kept(shape, call % self.sides.copies, self.candidate.nudge_at(call))
        if self.rng.random() < LATE_ODDS:
            self.judge_last()

    def judge_last(self) -> None:
        """The output of one call, chosen at random, of the last block that was timed on this shape, if any was.

        It is computed from values that nobody has seen a result for. Whatever was timed before is no younger, so who
        is honest for so long, or for so many calls, was honest then or is caught now. With nudges one more call is
        watched: by now the candidate may believe that nobody looks. Raises FaultError.
        """
        last, self._last = self._last, None
        if last is None or not self.judged:
            return
        shape, copy = last.shape, last.copy
        fault = judged_fault(self.sides.referee.judge(copy, during=last.nudge), self.spec)
        if fault is not None:
            raise FaultError(Fault(Reason.WRONG_WHEN_TIMED, f"{shape.name}: {fault.detail}"))
        if not self.sides.nudges:
            return
        report = self.candidate.client.check(copy, True, self.spec.allowed_ops)
        self.sides.referee.clear()
        fault = told_fault(report)
        if fault is not None:
            raise FaultError(Fault(fault.reason, f"{shape.name}, after it was timed: {fault.detail}"))

    def _report(self, shape: Shape, opponent: Side, pair: PairSamples, n: int) -> None:
        mine_us, other_us = pair.medians_us
        name = self.candidate.name
        self.tell(LiveSample(name, opponent.name, shape.name, mine_us, other_us, n, self.max_pairs))

    def _seed(self) -> int:
        return self.rng.getrandbits(48)


def clocks_agree(slope_us: float, events_us: float, device_us: float, n_calls: int) -> bool:
    """Whether the engine's clock, by the slope over ``n_calls`` calls, bears out the child's events.

    ``events_us`` is the events' own slope over the same batches, so that a chip that warmed up from one to the other
    accuses nobody; ``device_us`` is what they say of a call of the long batch, lest the short one be cut short.
    """
    slack_us = WAKE_UP_US / n_calls
    by_slope = slope_us <= (1 + CLOCK_SHARE) * max(events_us, 0.0) + slack_us
    return by_slope and slope_us <= (1 + 2 * CLOCK_SHARE) * max(device_us, 0.0) + slack_us


@dataclass(frozen=True, slots=True)
class _Kept:
    """A timed call whose output lies in the mailbox: its copy of the inputs, and the nudge under which it ran."""

    shape: Shape
    copy: int
    nudge: str


@dataclass(frozen=True, slots=True)
class _Opponent:
    """A side whose failure says nothing of the candidate."""

    side: Side

    def timed(self, n_calls: int, keep: int) -> list[float]:
        try:
            return self.side.timed(n_calls, keep)
        except WorkerFailure as failure:
            raise OpponentError(f"{self.side.name}: {failure}") from failure
