"""What a child's failure says of the candidate it ran. Pure."""

import signal

from kbtui.domain.verdict import Proof, Reason, Verdict, VerdictKind, rejected, unverified
from kbtui.evaluation.process.failures import (
    WorkerDied,
    WorkerError,
    WorkerFailure,
    WorkerNonsense,
    WorkerNotStarted,
    WorkerTimeout,
)
from kbtui.evaluation.process.places import Place

_BY_TYPE = {
    "OutOfMemoryError": Reason.OUT_OF_MEMORY,
    "MemoryError": Reason.OUT_OF_MEMORY,
    "OutOfResources": Reason.OUT_OF_RESOURCES,
    "CompilationError": Reason.COMPILE_ERROR,
    "CompileTimeAssertionFailure": Reason.COMPILE_ERROR,
    "UnsupportedLanguageConstruct": Reason.COMPILE_ERROR,
    "PTXASError": Reason.COMPILE_ERROR,
    "AcceleratorError": Reason.CRASHED,
    "SyntaxError": Reason.SYNTAX,
    "NoEntryPoint": Reason.NO_ENTRY_POINT,
    "PermissionError": Reason.SANDBOX_VIOLATION,
    "GlobalsChanged": Reason.GLOBALS_CHANGED,
}
_CRASH_TEXTS = ("CUDA error", "illegal memory access", "misaligned address", "an illegal instruction")
_MEMORY_TEXTS = ("out of memory", "can't allocate memory")
_MAX_DETAIL = 300


def verdict_of_failure(failure: WorkerFailure, stage: int, proof: Proof, where: str = "") -> Verdict:
    """The candidate's failure, or ours where the child broke for a reason that cannot be its doing."""
    match failure:
        case WorkerNotStarted():
            return unverified(Reason.HARNESS_FAILED, stage, proof, _line(str(failure), where))
        case WorkerNonsense():
            return rejected(Reason.SANDBOX_VIOLATION, stage, proof, _line(str(failure), where))
        case WorkerTimeout():
            return rejected(Reason.TIMED_OUT, stage, proof, _line(f"no answer in {failure.timeout_s:g} s", where))
        case WorkerDied():
            return _died(failure, stage, proof, where)
        case WorkerError():
            return _raised(failure, stage, proof, where)
        case _:
            return unverified(Reason.HARNESS_FAILED, stage, proof, _line(str(failure), where))


def printable(text: str) -> str:
    """A candidate's words without control characters and lone surrogates: they reach a terminal, git and SQLite."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def device_is_suspect(failure: WorkerFailure) -> bool:
    """Whether the GPU should be looked at before anything else runs on it."""
    return not isinstance(failure, WorkerError) or _reason(failure) is Reason.CRASHED


def lost(failure: WorkerFailure) -> bool:
    """Whether the child is gone and nobody saw it end: the process that starts children went before it."""
    return isinstance(failure, WorkerDied) and failure.signal is None and failure.status is None and not failure.why


def _died(failure: WorkerDied, stage: int, proof: Proof, where: str) -> Verdict:
    detail = _line(str(failure), where)
    if lost(failure):
        return unverified(Reason.HARNESS_FAILED, stage, proof, detail)
    if failure.why.startswith("broke the protocol"):
        return rejected(Reason.SANDBOX_VIOLATION, stage, proof, detail)
    if "memory" in failure.why:
        return rejected(Reason.OUT_OF_MEMORY, stage, proof, detail)
    match failure.signal:
        case signal.SIGSYS:
            return rejected(Reason.SANDBOX_VIOLATION, stage, proof, detail)
        case signal.SIGXCPU:
            return rejected(Reason.TIMED_OUT, stage, proof, detail)
        case signal.SIGKILL if not failure.why:
            return unverified(Reason.HARNESS_FAILED, stage, proof, detail)
    return rejected(Reason.CRASHED, stage, proof, detail)


def _raised(failure: WorkerError, stage: int, proof: Proof, where: str) -> Verdict:
    """Kinder than rejected only by what its frames and its class say: a candidate chooses names and words."""
    told = failure.told
    if failure.place is Place.TOOLS:
        # A confined child may start no compiler: its cache lacked something.
        return unverified(Reason.HARNESS_FAILED, stage, proof, _line(f"a kernel was not compiled ahead: {told}", where))
    if failure.ours:
        return unverified(Reason.HARNESS_FAILED, stage, proof, _line(told, where))
    return Verdict(VerdictKind.REJECTED, _reason(failure), stage, proof, _line(told, where), failure.line)


def _reason(failure: WorkerError) -> Reason:
    if failure.type in _BY_TYPE:
        return _BY_TYPE[failure.type]
    if failure.place is Place.COMPILER:
        return Reason.COMPILE_ERROR
    if any(text in failure.message for text in _CRASH_TEXTS):
        return Reason.CRASHED
    if any(text in failure.message.lower() for text in _MEMORY_TEXTS):
        return Reason.OUT_OF_MEMORY
    return Reason.RAISED


def _line(text: str, where: str) -> str:
    first = next((line.strip() for line in printable(text).strip().splitlines() if line.strip()), "")
    return f"{where}: {first[:_MAX_DETAIL]}" if where else first[:_MAX_DETAIL]
