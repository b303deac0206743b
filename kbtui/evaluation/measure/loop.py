"""Effects: times two sides in turns. Each side is a child of its own; they take turns on the engine's word."""

import math
import random
from collections.abc import Callable, Sequence
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
    """Four turns."""
    turns, kept = abba(pair), rng.randrange(n_calls)
    blocks = []
    for turn in turns:
        side, keep = (candidate, kept) if turn is Turn.CANDIDATE else (other, NEVER)
        blocks.append(side.timed(n_calls, keep))
    mine, theirs = (
        tuple(s for t, block in zip(turns, blocks, strict=True) if t is whose for s in block)
        for whose in (Turn.CANDIDATE, Turn.OTHER)
    )
    inner_over_outer = log_ratio_of(blocks)
    return PairSamples(mine, theirs, inner_over_outer if turns[0] is Turn.CANDIDATE else -inner_over_outer, kept)


def log_ratio_of(blocks: Sequence[Sequence[float]]) -> float:
    """log(inner / outer time) of an ABBA pair's four blocks of equally many calls, in the order in which they ran.

    Times that grow by the same factor from call to call leave it as it is, exactly. The mean over a side's two blocks
    sees to that from block to block; within a block the trend would still decide which call is the median. So it is
    estimated from the outer blocks, as the median over calls of the same place in both (Theil-Sen), and taken out.
    """
    n = min(len(block) for block in blocks)
    logs = [[math.log(us) for us in block[:n]] for block in blocks]
    a_call = median([last - first for first, last in zip(logs[0], logs[3], strict=True)]) / (3 * n)
    level = [median([log - a_call * (b * n + i) for i, log in enumerate(block)]) for b, block in enumerate(logs)]
    return (level[1] + level[2] - level[0] - level[3]) / 2


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
