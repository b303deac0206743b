"""The longest beginning of a text that is Python, by top-level statements. Pure."""

import ast
import re

_TOP_LEVEL = re.compile(r"^[^\s#)\]}]", re.MULTILINE)
#: The parser's own stack is the limit; no kernel nests this deep.
_MAX_NESTING = 60
_MAX_CUTS = 24


def parses(code: str) -> bool:
    return error_line(code) is None


def error_line(code: str) -> int | None:
    """1-based line of the first syntax error, None where there is none; line 1 for text no parser should be given."""
    if nesting(code) > _MAX_NESTING:
        return 1
    try:
        ast.parse(code)
    except SyntaxError as error:
        return max(error.lineno or 1, 1)
    except (ValueError, RecursionError, MemoryError):
        return 1
    return None


def longest_syntax(code: str) -> str:
    """The code without the top-level statement its first syntax error is in and all that follows; maybe empty.

    A cut may uncover an earlier error (an unclosed bracket is reported late), so it is repeated a bounded number of
    times, each time keeping less.
    """
    for _ in range(_MAX_CUTS):
        line = error_line(code)
        if line is None:
            return code
        starts = [match.start() for match in _TOP_LEVEL.finditer(code)]
        offset = _offset_of_line(code, line)
        before = [start for start in starts if start <= offset]
        code = code[: before[-1]] if before else ""
        code = _without_dangling(code)
        if not code.strip():
            return ""
    return ""


def _without_dangling(code: str) -> str:
    """Decorators left without their function go too."""
    lines = code.rstrip().split("\n")
    while lines and lines[-1].startswith("@"):
        lines.pop()
    return code[: len("\n".join(lines))]


def _offset_of_line(code: str, line: int) -> int:
    """Offset of the last character of a 1-based line."""
    at = -1
    for _ in range(line):
        following = code.find("\n", at + 1)
        if following < 0:
            return len(code)
        at = following
    return at


def nesting(code: str) -> int:
    """Deepest nesting of brackets or of unary operators in a row, counted without parsing."""
    depth = deepest = run = 0
    for char in code:
        if char in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in ")]}":
            depth = max(depth - 1, 0)
        run = run + 1 if char in "~-+!" else 0
        deepest = max(deepest, run)
    return max(deepest, max((len(line) - len(line.lstrip()) for line in code.split("\n")), default=0) // 4)
