"""Who runs when: interleaved ABBA blocks, and when a sequential decision may look. Pure."""

from enum import StrEnum


class Turn(StrEnum):
    CANDIDATE = "candidate"
    OTHER = "other"


def abba(pair: int) -> tuple[Turn, Turn, Turn, Turn]:
    """The four turns of one pair. A drift that is linear within it cancels; odd pairs start with the other side."""
    a, b = (Turn.OTHER, Turn.CANDIDATE) if pair % 2 == 0 else (Turn.CANDIDATE, Turn.OTHER)
    return a, b, b, a


def looks(max_pairs: int, first: int = 3) -> tuple[int, ...]:
    """Numbers of pairs after which a decision may be taken: about 1.5 x apart, the last is ``max_pairs``."""
    taken = []
    n = min(first, max_pairs)
    while 0 < n < max_pairs:
        taken.append(n)
        n = max(n + 1, round(n * 1.5))
    return (*taken, max_pairs) if max_pairs > 0 else ()


#: A call that takes so long, microseconds, is steady by itself.
LONG_CALL_US, FEWEST_LONG = 5000.0, 2


def calls_per_block(call_us: float, target_us: float = 1500.0, low: int = 4, high: int = 24) -> int:
    """Timed calls in one turn: enough for a stable median of short kernels, few for long ones."""
    if call_us >= LONG_CALL_US:
        return min(low, FEWEST_LONG)
    return max(low, min(high, round(target_us / max(call_us, 1e-3))))
