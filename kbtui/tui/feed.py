"""Effects: reads the store on one thread of its own; what it read is handed on as values."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass

from hints.load import load_hints
from kbtui.domain.candidate import ArtifactRef
from kbtui.domain.event import CommandKind
from kbtui.domain.problem import ProblemSpec
from kbtui.domain.proposal import Hint
from kbtui.errors import KbtuiError
from kbtui.problems import load_problem
from kbtui.tui.moment import Delta, Moment, Older
from kbtui.tui.reading import Beat, RunReading
from kbtui.tui.source import EngineStatus, RunRow, RunSource


@dataclass(frozen=True, slots=True)
class Listing:
    """The workspace's runs and the engine that works on one of them, if any."""

    rows: tuple[RunRow, ...]
    engine: EngineStatus | None


@dataclass(frozen=True, slots=True)
class Failure:
    """A read or a command that did not work, in one line."""

    what: str


@dataclass(frozen=True, slots=True)
class Text:
    """A source (``key`` is its commit) or an artifact (``key`` is its SHA-256) that was asked for."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class NoText:
    """A text could not be read: who waits for it waits no longer. A failure says why."""

    key: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A command was inserted, or could not be: then its id is None, and a failure says why."""

    run: str
    kind: CommandKind
    argument: str
    command_id: int | None


@dataclass(frozen=True, slots=True)
class Stored:
    """What is stored beside a candidate's events."""

    candidate: str
    refs: tuple[ArtifactRef, ...]


@dataclass(frozen=True, slots=True)
class Declared:
    """The problem a run searches, as its folder declares it (None where it cannot be read here), and the hints."""

    run: str
    problem: ProblemSpec | None
    hints: tuple[Hint, ...]


@dataclass(frozen=True, slots=True)
class Folded:
    """A whole run, read to be compared with another."""

    moment: Moment


#: Sources and artifacts kept at hand; the oldest is read again when it is asked for.
TEXTS_KEPT = 500

News = Delta | Beat | Older | Listing | Failure | Text | NoText | Asked | Stored | Declared | Folded


class Feed:
    """Hands jobs to one thread (so a source need not be thread-safe) and gives each result to ``tell``.

    ``tell`` is called on that thread and must only post a message.
    """

    def __init__(self, source: RunSource, executor: Executor, tell: Callable[[News], None]) -> None:
        self._source, self._executor, self._tell = source, executor, tell
        self._texts: dict[str, str] = {}
        self._reading: RunReading | None = None
        self._generation = 0
        self._read_generation = 0
        self._in_flight: Future[None] | None = None

    def poll(self, run: str) -> None:
        """Read what is new of a run, unless a read is still under way."""
        if self._in_flight is None or self._in_flight.done():
            self._in_flight = self._submit(lambda: self._read(run))

    def start_over(self) -> None:
        """Forget what was read, so that the next poll brings a run from its first event."""
        self._generation += 1

    def more(self, run: str) -> None:
        """Someone came to the end of a list: read on into the run's past, where it is not known."""
        self._submit(lambda: self._reading_of(run).more())

    def about(self, run: str, candidates: Sequence[str]) -> None:
        """Read these candidates, and what they were made from, where they are not known."""
        self._submit(lambda: self._about(run, candidates))

    def list_runs(self) -> None:
        if self._in_flight is None or self._in_flight.done():
            self._in_flight = self._submit(self._list)

    def text(self, key: str, artifact: bool = False) -> str | None:
        """The text if it was read before; else None, and it will be told when it is there."""
        if key in self._texts:
            return self._texts[key]
        self._submit(lambda: self._load(key, artifact))
        return None

    def stored(self, run: str, candidate: str) -> None:
        """Ask what is stored beside a candidate's events."""
        self._submit(lambda: self._tell(Stored(candidate, tuple(self._source.artifacts(run, candidate)))))

    def ask(self, run: str, kind: CommandKind, argument: str = "", note: str = "", parent: str | None = None) -> None:
        """Insert a command."""
        self._submit(lambda: self._insert(run, kind, argument, note, parent))

    def declare(self, run: str, problem_path: str) -> None:
        """Ask for what the problem's folder declares, and for the hints."""
        self._submit(lambda: self._declare(run, problem_path))

    def fold(self, run: str) -> None:
        """Ask for what is known of another run, to compare it."""
        self._submit(lambda: self._fold(run))

    def work(self, job: Callable[[], str | None]) -> None:
        """Run something slow of the caller's on the feed's thread; what it returns is told as a Failure."""

        def told() -> None:
            said = job()
            if said:
                self._tell(Failure(said))

        self._submit(told)

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _submit(self, job: Callable[[], None]) -> Future[None]:
        return self._executor.submit(self._guarded, job)

    def _guarded(self, job: Callable[[], None]) -> None:
        try:
            job()
        except KbtuiError as error:
            self._tell(Failure(str(error)))
        except Exception as error:  # the thread's boundary: a store that cannot be read is said, not fatal
            self._tell(Failure(f"the store could not be read ({type(error).__name__}: {error}); trying again"))

    def _read(self, run: str) -> None:
        for news in self._reading_of(run).poll():
            self._tell(news)

    def _about(self, run: str, candidates: Sequence[str]) -> None:
        found = self._reading_of(run).about(candidates)
        if found is not None:
            self._tell(found)

    def _reading_of(self, run: str) -> RunReading:
        again = self._read_generation != self._generation
        if self._reading is None or self._reading.run != run or again:
            self._reading, self._read_generation = RunReading(self._source, run), self._generation
        return self._reading

    def _list(self) -> None:
        self._tell(Listing(tuple(self._source.runs()), self._source.engine()))

    def _load(self, key: str, artifact: bool) -> None:
        if key not in self._texts:
            try:
                text = self._source.artifact(key).decode("utf-8", "replace") if artifact else self._source.source(key)
            except Exception:
                self._tell(NoText(key))
                raise
            self._texts[key] = text
            if len(self._texts) > TEXTS_KEPT:
                self._texts.pop(next(iter(self._texts)))
        self._tell(Text(key, self._texts[key]))

    def _declare(self, run: str, problem_path: str) -> None:
        try:
            problem = load_problem(problem_path).spec
        except (KbtuiError, OSError):  # moved or removed since: the run can be looked at without it
            problem = None
        try:
            hints = load_hints()
        except KbtuiError as error:  # someone edits them: said, and the rest is shown
            hints = ()
            self._tell(Failure(str(error)))
        self._tell(Declared(run, problem, hints))

    def _fold(self, run: str) -> None:
        moment = Moment(run)
        for news in RunReading(self._source, run).poll():
            match news:
                case Delta():
                    moment.apply(news)
                case Older():
                    moment.add(news)
        self._tell(Folded(moment))

    def _insert(self, run: str, kind: CommandKind, argument: str, note: str, parent: str | None) -> None:
        try:
            command_id = self._source.insert_command(run, kind, argument, note, parent)
        except Exception:
            self._tell(Asked(run, kind, argument, None))
            raise
        self._tell(Asked(run, kind, argument, command_id))
