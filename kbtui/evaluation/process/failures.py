"""How a call into a child process fails. None of these is an error of kbtui's user; the gate makes verdicts of them."""

import signal
from typing import Any

from kbtui.evaluation.process.places import Place


class HarnessError(RuntimeError):
    """Raised in a child by kbtui's own code: what that cannot do is never a candidate's failure."""


class WorkerFailure(Exception):  # noqa: N818 - a group of outcomes, not an error
    """A call did not return a value."""


class WorkerDied(WorkerFailure):
    """The child ended before it answered.

    Attributes:
        signal: number of the signal that ended it, or None.
        status: its exit status, or None.
        why: what kbtui knows about it, e.g. ``over its memory limit``; empty when it died by itself.
        log_tail: the end of what it wrote on stdout and stderr.
    """

    def __init__(self, *, signal_number: int | None, status: int | None, log_tail: str, why: str = "") -> None:
        self.signal, self.status, self.log_tail, self.why = signal_number, status, log_tail, why
        super().__init__(f"the child {self.how}" + (f" ({why})" if why else ""))

    @property
    def how(self) -> str:
        """In words: ``was ended by SIGSEGV``, ``exited with status 3``."""
        if self.signal is not None:
            try:
                return f"was ended by {signal.Signals(self.signal).name}"
            except ValueError:
                return f"was ended by signal {self.signal}"
        return f"exited with status {self.status}" if self.status is not None else "is gone"


class WorkerNotStarted(WorkerFailure):
    """The child did not come to life: nothing of what it was to run has run, so this is never a candidate's doing."""

    def __init__(self, cause: WorkerFailure) -> None:
        self.cause = cause
        super().__init__(f"the child did not start: {cause}")


class WorkerNonsense(WorkerFailure):
    """The child answered something that its role never answers: whatever ran in it has forged the answer."""

    def __init__(self, method: str, value: Any) -> None:
        super().__init__(f"its answer to {method} was forged: {repr(value)[:80]}")


class WorkerTimeout(WorkerFailure):
    """The child did not answer in time and was killed with its whole process group."""

    def __init__(self, method: str, timeout_s: float, log_tail: str) -> None:
        self.method, self.timeout_s, self.log_tail = method, timeout_s, log_tail
        super().__init__(f"{method} did not answer in {timeout_s:g} s")


class WorkerError(WorkerFailure):
    """A Python exception in the child. ``type``, ``message`` and ``traceback_tail`` may be a candidate's own words.

    Attributes:
        type: the exception's class name.
        message: its text.
        traceback_tail: the last frames, as printed.
        line: 1-based line of the candidate's source, where the exception passed through it.
        place: where it was raised, by its frames.
        ours: whether it is a HarnessError, which no candidate can name.
        raised_at: the file, number and text of the line that raised it, to be told where it has no words of its own.
    """

    def __init__(
        self,
        type_name: str,
        message: str,
        traceback_tail: str,
        line: int | None,
        *,
        place: Place = Place.ELSEWHERE,
        ours: bool = False,
        raised_at: str = "",
    ) -> None:
        self.type, self.message, self.traceback_tail, self.line = type_name, message, traceback_tail, line
        self.place, self.ours, self.raised_at = place, ours, raised_at
        super().__init__(self.told)

    @property
    def told(self) -> str:
        """For a person: nothing is to be concluded from it, since a bare assert's line is any words at all."""
        return f"{self.type}: {self.message if self.message.strip() else self.raised_at}"
