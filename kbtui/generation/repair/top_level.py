"""Leaves out what runs when a module is imported: examples, prints, tests. Pure."""

import libcst as cst
import libcst.matchers as m

from kbtui.generation.rewrites.syntax import dotted

_HARMLESS_CALLS = ("triton.", "tl.", "math.")
_HARMLESS_NAMES = frozenset({"int", "float", "tuple", "list", "dict", "min", "max", "set", "frozenset", "len", "range"})


def drop_examples(module: cst.Module) -> tuple[cst.Module, tuple[str, ...]]:
    """The module with only imports, definitions, constants and its docstring at the top level."""
    kept = [s for i, s in enumerate(module.body) if _belongs(s, first=i == 0)]
    n_dropped = len(module.body) - len(kept)
    if not n_dropped:
        return module, ()
    return module.with_changes(body=kept), (f"left out {n_dropped} example statements",)


def _belongs(statement: cst.BaseStatement | cst.SimpleStatementLine, first: bool) -> bool:
    match statement:
        case cst.FunctionDef() | cst.ClassDef() | cst.Try():
            return True
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString())]):
            return first
        case cst.SimpleStatementLine(body=parts):
            return all(_is_constant(p) or isinstance(p, (cst.Import, cst.ImportFrom)) for p in parts)
        case _:
            return False


def _is_constant(part: cst.BaseSmallStatement) -> bool:
    if not isinstance(part, (cst.Assign, cst.AnnAssign)) or part.value is None:
        return isinstance(part, cst.AnnAssign)
    calls = [dotted(cst.ensure_type(c, cst.Call).func) for c in m.findall(part.value, m.Call())]
    return all(c.startswith(_HARMLESS_CALLS) or c in _HARMLESS_NAMES for c in calls)
