"""Whether two sources say the same, and what a model that repeats itself is told. Pure."""

import ast
import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Repeats:
    """How many of a model's replies since its last new kernel said nothing new.

    ``copies`` gave the kernel back that the prompt shows, ``again`` one that was tried before.
    """

    copies: int = 0
    again: int = 0

    @property
    def told(self) -> str:
        """One line for the next prompt; empty where there is nothing to say."""
        n = self.copies + self.again
        if not n:
            return ""
        which = "Your last reply" if n == 1 else f"Your last {n} replies"
        what = ", ".join(
            f"{number} {'was' if number == 1 else 'were'} {of}"
            for number, of in ((self.copies, "the kernel above as it is"), (self.again, "what was tried before"))
            if number
        )
        return f"{which} said nothing new: {what}. Change what is computed or how; names and comments do not count."


def normalised_sha(source: str) -> str:
    """SHA-256 of what a source says: comments, docstrings, spacing and quotes do not count.

    A source that does not parse is taken as it is.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return hashlib.sha256(source.encode(errors="surrogatepass")).hexdigest()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            node.body = [s for s in node.body if not _is_text(s)] or [ast.Pass()]
    return hashlib.sha256(ast.dump(tree).encode(errors="surrogatepass")).hexdigest()


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )
