"""Time that passes only by being paid for: what a replayed evaluation took when it was recorded. Pure state."""

#: Costs are rounded to this many seconds, about a microsecond: a power of two, so that sums are exact in any order
#: and a resumed run reaches the same totals to the last bit.
TICK_S = 2.0**-20


class SimulatedTime:
    """``owe`` notes a cost while work is done, ``settle`` lets it pass once the work is recorded as done.

    A process killed in between has paid nothing, and pays once when it does the work again.
    """

    def __init__(self) -> None:
        self._now_s = 0.0
        self._owed_s = 0.0

    def now_s(self) -> float:
        return self._now_s

    def owe(self, seconds: float) -> None:
        self._owed_s += round(seconds / TICK_S) * TICK_S

    def settle(self, counts: bool = True) -> None:
        """Pay what is owed; ``counts=False`` forgives it, where a process before this one has paid already."""
        self._now_s += self._owed_s if counts else 0.0
        self._owed_s = 0.0
