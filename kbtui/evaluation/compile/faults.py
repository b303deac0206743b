"""Turns an exception met while a candidate is compiled into its verdict. Pure, but for Triton's exception classes."""

import linecache
import re
import traceback

from triton.compiler.errors import CompilationError
from triton.runtime.errors import OutOfResources, PTXASError

from kbtui.domain.verdict import Proof, Reason, Verdict, rejected
from kbtui.evaluation.candidate_module import NoEntryPoint
from kbtui.evaluation.process.places import Place, candidate_line, is_candidate, place_of

_STAGE = 0
_DETAIL_CHARS = 400
#: ``ptxas /tmp/x.ptx, line 104; error   : Not a name of any known instruction: 'nonsense'``, or without file and line.
_PTXAS_SAYS = re.compile(r"\b(?:error|fatal)\s+:\s*(.*)")


def judge(error: Exception, where: str) -> Verdict:
    """``where``: ``import``, or the name of the shape it was called on."""
    match error:
        case SyntaxError():
            return _rejected(Reason.SYNTAX, f"{error.msg}; mend the line", error.lineno)
        case NoEntryPoint():
            return _rejected(Reason.NO_ENTRY_POINT, str(error), None)
        case CompilationError():
            return _rejected(Reason.COMPILE_ERROR, _of_triton(error, where), _line_of(error))
        case OutOfResources():
            return _rejected(Reason.OUT_OF_RESOURCES, _of_resources(error, where), candidate_line(error))
        case PTXASError():
            return _of_ptxas(error, where)
        case MemoryError():
            return _rejected(Reason.OUT_OF_MEMORY, f"{_when(where)} ran out of host memory", candidate_line(error))
        case _ if place_of(error) is not Place.ELSEWHERE:
            said = f"on {where}: Triton's compiler failed on it ({type(error).__name__}: {_first_line(error)})"
            return _rejected(Reason.COMPILE_ERROR, said, candidate_line(error))
        case RuntimeError() | NotImplementedError() if "meta" in str(error).lower():
            detail = f"on {where}: it reads a tensor's value on the host; keep values on the device"
            return _rejected(Reason.RAISED, detail, candidate_line(error))
        case _:
            detail = f"{_when(where)} raised {type(error).__name__}: {_first_line(error)}"
            return _rejected(Reason.RAISED, detail, candidate_line(error))


def _when(where: str) -> str:
    return "its import" if where == "import" else f"kernel_function on {where}"


def _rejected(reason: Reason, detail: str, line: int | None) -> Verdict:
    return rejected(reason, _STAGE, Proof.NONE, detail[:_DETAIL_CHARS], line)


def _of_triton(error: CompilationError, where: str) -> str:
    innermost = _innermost_first(error)[0]
    said = str(innermost.error_message or innermost.__cause__ or "").strip() or _last_line(error)
    statement = _statement(innermost)
    return f"on {where}: {' '.join(said.split())}" + (f", at `{statement}`" if statement else "")


def _of_resources(error: OutOfResources, where: str) -> str:
    what = {"shared memory": "smaller tiles or fewer stages", "threads": "fewer warps"}.get(error.name, "smaller tiles")
    return f"on {where}: needs {error.required} of {error.name}, the device has {error.limit}; use {what}"


def _of_ptxas(error: PTXASError, where: str) -> Verdict:
    text = str(error)
    lines = text.splitlines()
    said = next((found[1] for line in lines if (found := _PTXAS_SAYS.search(line))), lines[0] if lines else "")
    exceeds = re.search(r"uses too much (shared|local|parameter)", text)
    reason = Reason.OUT_OF_RESOURCES if exceeds else Reason.COMPILE_ERROR
    return _rejected(reason, f"on {where}: ptxas: {said.strip()}", candidate_line(error))


def _line_of(error: CompilationError) -> int | None:
    """Triton numbers lines within a function's text; a person reads the candidate's file. Innermost error first."""
    for met in _innermost_first(error):
        start, line = _function_line(met), getattr(met.node, "lineno", None)
        if start is not None and line is not None:
            return int(start + line - 1)
    return candidate_line(error)


def _function_line(error: CompilationError) -> int | None:
    """Line of the candidate's file at which the function starts whose text the error carries."""
    if not error.src:
        return None
    first = str(error.src).splitlines()[0].strip()
    for path in filter(is_candidate, tuple(linecache.cache)):
        for number, line in enumerate(linecache.getlines(path), start=1):
            if line.strip() == first:
                return number
    return None


def _innermost_first(error: BaseException) -> list[CompilationError]:
    chain: list[BaseException] = [error]
    while (cause := chain[-1].__cause__) is not None:
        chain.append(cause)
    return [e for e in reversed(chain) if isinstance(e, CompilationError)]


def _statement(error: CompilationError) -> str:
    line = getattr(error.node, "lineno", None)
    lines = str(error.src or "").splitlines()
    return lines[line - 1].strip() if line is not None and 0 < line <= len(lines) else ""


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "")


def _last_line(error: BaseException) -> str:
    return traceback.format_exception_only(error)[-1].strip().splitlines()[-1]
