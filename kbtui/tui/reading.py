"""Reads one run from a source, poll by poll: what is new, and of a long run a page of its past at a time."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kbtui.domain.event import CandidateAdmitted, Envelope, RungCompleted
from kbtui.tui.moment import Delta, Older
from kbtui.tui.source import EngineStatus, RunSource

#: Candidates read before the first paint, then with each poll, until so many are known.
N_FIRST, N_PAGE, N_KEPT = 60, 80, 1_000
#: So many more when someone comes to the end of a list.
N_MORE = 400
#: Ancestors fetched above a candidate that someone looks at.
_N_ANCESTORS = 40


@dataclass(frozen=True, slots=True)
class Beat:
    """Nothing new in the store; only the heartbeat's age."""

    run: str
    engine: EngineStatus | None


class RunReading:
    """What has been read of one run so far. Used on the feed's thread only."""

    def __init__(self, source: RunSource, run: str) -> None:
        self._source, self.run = source, run
        self._version: int | None = None
        self._seq, self._sample = -1, 0
        self._from_seq = 0
        self._known: set[str] = set()
        self._wanted = N_KEPT

    def poll(self) -> Iterator[Delta | Beat | Older]:
        """The news since the last poll, in the order in which they are to be taken in."""
        version, engine = self._source.data_version(), self._source.engine()
        if version == self._version:
            yield Beat(self.run, engine)
        else:
            yield from self._changed(version, engine)
        if self._from_seq and len(self._known) < self._wanted:
            yield self._page()

    def more(self) -> None:
        """Someone came to the end of what is known."""
        self._wanted = max(self._wanted, len(self._known) + N_MORE)

    def about(self, candidates: Sequence[str]) -> Older | None:
        """These candidates with those they were made from, where they are not known yet."""
        found: dict[int, Envelope] = {}
        missing = [c for c in candidates if c not in self._known]
        for _ in range(_N_ANCESTORS):
            if not missing or not self._from_seq:
                break
            envelopes = self._events_of(missing)
            found |= {e.seq: e for e in envelopes}
            self._note(envelopes)
            missing = [p for p in _parents(envelopes) if p not in self._known]
        return Older(self.run, tuple(found[seq] for seq in sorted(found))) if found else None

    def _changed(self, version: int, engine: EngineStatus | None) -> Iterator[Delta | Older]:
        first = self._version is None or self._seq < 0
        envelopes = self._first() if first else tuple(self._source.envelopes(self.run, self._seq))
        self._note(envelopes)
        strangers = {e.event.candidate for e in envelopes if isinstance(e.event, RungCompleted)} - self._known
        if strangers:
            earlier = self._events_of(sorted(strangers))
            self._note(earlier)
            yield Older(self.run, earlier)
        after = -1 if first else self._seq
        samples = tuple(self._source.live_samples(self.run, self._sample))
        totals = self._source.totals(self.run) if self._from_seq else None
        self._version = version
        self._seq = envelopes[-1].seq if envelopes else self._seq
        self._sample = samples[-1][0] if samples else self._sample
        yield Delta(
            run=self.run,
            envelopes=envelopes,
            engine=engine,
            samples=tuple(sample for _, sample in samples),
            samples_to=self._sample,
            commands=tuple(self._source.commands(self.run)),
            version=version,
            from_seq=self._from_seq,
            totals=totals,
            after_seq=after,
        )

    def _first(self) -> tuple[Envelope, ...]:
        window = self._source.first_window(self.run, N_FIRST)
        self._from_seq = window.from_seq
        return window.envelopes

    def _page(self) -> Older:
        window = self._source.older_window(self.run, self._from_seq, N_PAGE)
        self._from_seq = window.from_seq
        self._note(window.envelopes)
        return Older(self.run, self._read_before(window.envelopes), window.from_seq)

    def _events_of(self, candidates: Sequence[str]) -> tuple[Envelope, ...]:
        return self._read_before(self._source.events_of(self.run, candidates))

    def _read_before(self, envelopes: Iterable[Envelope]) -> tuple[Envelope, ...]:
        """Without what the next poll brings."""
        return tuple(e for e in envelopes if e.seq <= self._seq)

    def _note(self, envelopes: Iterable[Envelope]) -> None:
        self._known.update(e.event.candidate.id for e in envelopes if isinstance(e.event, CandidateAdmitted))


def _parents(envelopes: Iterable[Envelope]) -> list[str]:
    admitted = (e.event.candidate for e in envelopes if isinstance(e.event, CandidateAdmitted))
    return sorted({parent for candidate in admitted for parent in candidate.parents})
