"""One call's part of the benchmarks: which cases it begins, given the time that it has. Pure."""

from dataclasses import dataclass, field

#: Seconds beside a search's budget, and of a contest, as long as this call has seen none.
SEARCH_BESIDE_S, CONTEST_S = 30.0, 110.0
#: A contest that takes longer is ended: something hangs.
CONTEST_LIMIT_S = 300.0


@dataclass(slots=True)
class Part:
    """``limit_s``: no case is begun that would end later, by what the ones before took; None is no limit."""

    limit_s: float | None
    search_s: float
    longest_search_s: float = 0.0
    longest_contest_s: float = 0.0
    finished: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    def needed_s(self, searched: bool) -> float:
        """What a case will take."""
        searching = self.longest_search_s or self.search_s + SEARCH_BESIDE_S
        return (0.0 if searched else searching) + (self.longest_contest_s or CONTEST_S)

    def has_room(self, gone_s: float, searched: bool) -> bool:
        return self.limit_s is None or gone_s + self.needed_s(searched) <= self.limit_s

    def contest_limit_s(self, gone_s: float) -> float:
        """How long a contest may take at most; never so short that it could not even start."""
        left = CONTEST_LIMIT_S if self.limit_s is None else self.limit_s - gone_s
        return max(60.0, min(CONTEST_LIMIT_S, left))

    def took(self, search_s: float, contest_s: float) -> None:
        """Seconds that a case took, 0 where a part of it was done before."""
        self.longest_search_s = max(self.longest_search_s, search_s)
        self.longest_contest_s = max(self.longest_contest_s, contest_s)

    def summary(self) -> str:
        words = (("finished", self.finished), ("failed", self.failed), ("left for another call", self.left))
        return (
            "; ".join(f"{len(names)} {word}: {', '.join(names)}" for word, names in words if names) or "nothing to do"
        )
