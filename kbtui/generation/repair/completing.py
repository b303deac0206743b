"""Takes what a reply left out from the kernel it is about: models answer with the part that they change. Pure."""

import collections
from collections.abc import Mapping

import libcst as cst
import libcst.matchers as m

from kbtui.generation.repair.imports import after_header, bound_names, is_import
from kbtui.generation.rewrites.syntax import find_all, find_names, is_jit

_ENTRY = "kernel_function"
Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement


def complete(module: cst.Module, parent: cst.Module) -> tuple[cst.Module, tuple[str, ...]]:
    """The module with the parent's constants and functions that it uses but does not define.

    Without a function on the host it gets the parent's entry point too, if it has a kernel of that one's name.
    """
    theirs: dict[str, Statement] = {name: s for s in parent.body for name in _defined_by(s)}
    mine: set[str] = set().union(*map(_binds, module.body))
    wanted = {name for statement in module.body for name in _used_by(statement)} & theirs.keys() - mine
    if _is_part_of(module, theirs):
        wanted.add(_ENTRY)
    taken: set[str] = set()
    while wanted - taken:
        name = min(wanted - taken)
        taken.add(name)
        wanted |= _used_by(theirs[name]) & theirs.keys() - mine
    if not taken:
        return module, ()
    statements = [s for s in parent.body if taken & _defined_by(s)]
    at = _after_imports(module)
    if at == 0:
        statements[0] = statements[0].with_changes(leading_lines=())
    body = [*module.body[:at], *statements, *module.body[at:]]
    named = ", ".join(dict.fromkeys(n for s in statements for n in sorted(_defined_by(s))))
    return module.with_changes(body=body), (f"took {named} from the kernel it is about",)


def _after_imports(module: cst.Module) -> int:
    at = after_header(module)
    while at < len(module.body) and is_import(module.body[at]):
        at += 1
    return at


def _is_part_of(module: cst.Module, theirs: Mapping[str, Statement]) -> bool:
    """Kernels alone, one of which replaces one of the parent's."""
    functions = [s for s in module.body if isinstance(s, cst.FunctionDef)]
    alone = bool(functions) and all(is_jit(f) for f in functions) and not m.findall(module, m.ClassDef())
    return alone and _ENTRY in theirs and any(f.name.value in theirs for f in functions)


def _used_by(statement: Statement) -> set[str]:
    """Names that it may take from outside: no attributes, no keywords of calls, nothing that it binds itself."""
    used = collections.Counter(find_names(statement))
    used.subtract(a.attr.value for a in find_all(statement, cst.Attribute))
    used.subtract(a.keyword.value for a in find_all(statement, cst.Arg) if a.keyword is not None)
    return {name for name, n in used.items() if n > 0} - bound_names(cst.Module([statement]))


def _binds(statement: Statement) -> set[str]:
    """Names at the top level that it binds. What a function binds inside, its parameters too, is none."""
    match statement:
        case cst.FunctionDef(name=name) | cst.ClassDef(name=name):
            return {name.value}
        case _:
            return bound_names(cst.Module([statement]))


def _defined_by(statement: Statement) -> set[str]:
    """Names that a constant or a function at the top level defines; imports are mended elsewhere."""
    match statement:
        case cst.FunctionDef(name=name):
            return {name.value}
        case cst.SimpleStatementLine(body=[cst.Assign(targets=targets)]):
            return {t.target.value for t in targets if isinstance(t.target, cst.Name)}
        case _:
            return set()
