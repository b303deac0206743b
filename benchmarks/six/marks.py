"""What a case's time goes into, phase by phase. Effects: a clock, stderr."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from kbtui.console import tell
from kbtui.domain.measurement import LiveSample

Phases = tuple[tuple[str, float], ...]
#: What a search as a whole went into; the phases of a contest come after them.
SEARCH_PHASES = ("search's start", "search", "search's end")


@dataclass(slots=True)
class Marks:
    """``reached`` ends a phase: the time since the one before is its. Each is told as it ends."""

    clock: Callable[[], float] = time.monotonic
    say: Callable[[str], None] = tell
    found: list[tuple[str, float]] = field(default_factory=list)
    _at: float = field(init=False)

    def __post_init__(self) -> None:
        self._at = self.clock()

    def reached(self, phase: str) -> None:
        now = self.clock()
        self.took(phase, now - self._at)
        self._at = now

    def go_on(self) -> None:
        """What was told since by ``took`` is no part of the next phase."""
        self._at = self.clock()

    def took(self, phase: str, seconds: float) -> None:
        self.found.append((phase, round(seconds, 2)))
        self.say(f"phase {phase}: {seconds:.1f} s")

    @property
    def phases(self) -> Phases:
        return tuple(self.found)


@dataclass(slots=True)
class Turns:
    """A sample sink. Each process pair's time goes into its processes' start, until the first sample, and its turns."""

    marks: Marks
    _first: str = ""
    _n: int = 0
    _since: float = 0.0
    _last: float = field(init=False)

    def __post_init__(self) -> None:
        self._last = self.marks.clock()

    def __call__(self, sample: LiveSample) -> None:
        now, self._first = self.marks.clock(), self._first or sample.against
        if sample.pair == 1 and sample.against == self._first:
            self._end_turns()
            self._n += 1
            self.marks.took(f"start of process pair {self._n}", now - self._last)
            self._since = now
        self._last = now

    def over(self) -> None:
        self._end_turns()
        self.marks.took("last judgements", self.marks.clock() - self._last)
        self.marks.go_on()

    def _end_turns(self) -> None:
        if self._n:
            self.marks.took(f"turns of process pair {self._n}", self._last - self._since)


def told(phases: Phases) -> str:
    """``start-up 9.8, search 43.1, ...: 104 s``."""
    each = ", ".join(f"{name} {seconds:.1f}" for name, seconds in phases)
    return f"{each}: {sum(seconds for _, seconds in phases):.0f} s"
