"""How much may be sent over the line: looking waits while what was drawn lately is more than a thin line carries."""

from dataclasses import dataclass

#: Kept to on average; a whole screen of 120x40 in true colour is about 25 KB, so a burst of three goes out at once.
BYTES_A_SECOND, BURST_BYTES = 48_000, 75_000
#: A key held down draws more than that: what it owes the line is forgotten beyond two seconds.
MOST_OWED_BYTES = 96_000


@dataclass(slots=True)
class Thrift:
    """A bucket that fills with time and empties with what is sent; times in seconds of one clock."""

    left_bytes: float = BURST_BYTES
    at_s: float = 0.0

    def sent(self, n_bytes: int, now_s: float) -> None:
        """What a key makes the viewer draw is sent at once, and counts all the same."""
        self._fill(now_s)
        self.left_bytes = max(self.left_bytes - n_bytes, -MOST_OWED_BYTES)

    def allows(self, now_s: float) -> bool:
        """Whether the store may be looked at for something to draw."""
        self._fill(now_s)
        return self.left_bytes > 0

    def _fill(self, now_s: float) -> None:
        self.left_bytes = min(BURST_BYTES, self.left_bytes + (now_s - self.at_s) * BYTES_A_SECOND)
        self.at_s = now_s
