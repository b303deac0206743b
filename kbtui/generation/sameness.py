"""Whether two sources say the same. Pure."""

import ast
import hashlib


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
