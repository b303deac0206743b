"""Effects: times two sides in turns. Each side is a child of its own; they take turns on the engine's word."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from kbtui.evaluation.measure.robust import median
from kbtui.evaluation.measure.schedule import Turn, abba

NEVER = -1


class Side(Protocol):
    def timed(self, n_calls: int, keep: int) -> list[float]:
        """Device microseconds of ``n_calls`` calls; the result of call ``keep`` is delivered (``NEVER``: none)."""
        ...


@dataclass(frozen=True, slots=True)
class PairSamples:
    """Samples of one ABBA pair, microseconds, in the order they were taken, and the call whose output was kept."""

    candidate_us: tuple[float, ...]
    other_us: tuple[float, ...]
    log_ratio: float
    kept: int

    @property
    def medians_us(self) -> tuple[float, float]:
        return median(self.candidate_us), median(self.other_us)


def time_pair(pair: int, candidate: Side, other: Side, n_calls: int, rng: random.Random) -> PairSamples:
    """Four turns. The log ratio is the mean over turns, so a linear drift leaves it alone."""
    taken: dict[Turn, list[list[float]]] = {Turn.CANDIDATE: [], Turn.OTHER: []}
    kept = rng.randrange(n_calls)
    for turn in abba(pair):
        side, keep = (candidate, kept) if turn is Turn.CANDIDATE else (other, NEVER)
        taken[turn].append(side.timed(n_calls, keep))
    logs = {turn: sum(math.log(median(block)) for block in blocks) / 2 for turn, blocks in taken.items()}
    mine, theirs = (tuple(s for block in taken[t] for s in block) for t in (Turn.CANDIDATE, Turn.OTHER))
    return PairSamples(mine, theirs, logs[Turn.OTHER] - logs[Turn.CANDIDATE], kept)


def retaken(
    take: Callable[[], PairSamples], trouble: Callable[[], str | None], tries: int = 3
) -> tuple[PairSamples, str | None]:
    """A pair taken again while something spoils it; the last one with the reason when it never got better."""
    for _ in range(tries):
        before = trouble()
        pair = take()
        why = before or trouble()
        if why is None:
            return pair, None
    return pair, why
