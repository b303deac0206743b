"""What the entry point of a problem's kernels takes. Pure."""

import ast

from kbtui.domain.problem import Problem


def input_names(problem: Problem, parent_source: str | None) -> tuple[str, ...]:
    """Names of the entry point's arguments: as the parent has them, else the first kernel, else the reference."""
    for source, name in (
        (parent_source, "kernel_function"),
        (problem.kernel_source, "kernel_function"),
        (problem.reference_source, "reference"),
        (problem.reference_source, "forward"),
    ):
        names = _arguments(source, name) if source else None
        if names:
            return names
    return ("x",)


def _arguments(source: str, function: str) -> tuple[str, ...] | None:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return tuple(a.arg for a in node.args.args if a.arg != "self")
    return None
