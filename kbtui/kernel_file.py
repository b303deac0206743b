"""A kernel a person hands in. Effects: reads one file."""

import ast
from dataclasses import replace
from pathlib import Path

from kbtui.domain.problem import Problem
from kbtui.errors import UsageError

ENTRY_POINTS = ("kernel_function", "ModelNew")


def with_kernel(problem: Problem, path: Path | None) -> Problem:
    """The problem with the kernel at ``path`` as its first, or with its own, checked. Raises UsageError on a bad one.

    A problem without any kernel is returned as it is.
    """
    if path is not None:
        return replace(problem, kernel_source=read_kernel(path))
    if problem.kernel_source is not None:
        check_kernel(problem.kernel_source, str(Path(problem.path) / "kernel.py"))
    return problem


def read_kernel(path: Path) -> str:
    """The file's text. Raises UsageError if it cannot be read, does not parse, or has no entry point."""
    try:
        source = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"the kernel {path} is not text", "give a Python file in UTF-8") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot read the kernel {path}: {why}", "give the path of a Python file") from None
    check_kernel(source, str(path))
    return source


def check_kernel(source: str, where: str) -> None:
    """Raises UsageError unless the source parses and defines an entry point."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        at = f" at line {line}" if line else ""
        raise UsageError(f"the kernel {where} is not Python{at}: {getattr(error, 'msg', error)}", "mend it") from None
    names = {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    if not names & set(ENTRY_POINTS):
        raise UsageError(
            f"the kernel {where} has no kernel_function",
            "define `def kernel_function(*inputs)` that takes the reference's inputs and returns its output",
        )
