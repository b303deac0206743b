"""Constants at the top of a kernel's module (``TILE = 4096``): reading and replacing them. Pure."""

import ast
import re
from collections.abc import Mapping

Value = int | float | str


def read_constants(source: str) -> dict[str, Value]:
    """The module's upper-case names bound once to a number or text, in order; nothing of a source with no syntax."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[str, Value] = {}
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant() | ast.UnaryOp() as value):
                constant = _constant(value)
                if name.isupper() and constant is not None:
                    found[name] = constant
    return found


def _constant(node: ast.expr) -> Value | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, (int, float, str)) and not isinstance(value, bool) else None


def set_constants(source: str, values: Mapping[str, Value]) -> str:
    """The source with each named constant bound to its new value. Raises KeyError on a name that is not there."""
    for name, value in values.items():
        line = re.compile(rf"^{re.escape(name)} = [^\n#]*?(?=[ \t]*(?:#[^\n]*)?$)", re.MULTILINE)
        found = line.search(source)
        if found is None:
            raise KeyError(name)
        source = f"{source[: found.start()]}{name} = {_literal(value)}{source[found.end() :]}"
    return source


def _literal(value: Value) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
