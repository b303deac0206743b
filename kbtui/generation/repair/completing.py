"""Takes what a reply left out from the kernel it is about: models answer with the part that they change. Pure."""

from collections.abc import Mapping

import libcst as cst
import libcst.matchers as m

from kbtui.generation.repair.imports import after_header, bound_names, is_import
from kbtui.generation.rewrites.syntax import find_names, is_jit

_ENTRY = "kernel_function"
Statement = cst.BaseStatement | cst.SimpleStatementLine


def complete(module: cst.Module, parent: cst.Module) -> tuple[cst.Module, tuple[str, ...]]:
    """The module with the parent's constants and functions that it uses but does not define.

    Without a function on the host it gets the parent's entry point too, if it has a kernel of that one's name.
    """
    theirs: dict[str, Statement] = {name: s for s in parent.body for name in _defined_by(s)}
    wanted = {name for name in find_names(module) if name in theirs} - bound_names(module) - _functions(module)
    if _is_part_of(module, theirs):
        wanted.add(_ENTRY)
    taken: set[str] = set()
    while wanted - taken:
        name = min(wanted - taken)
        taken.add(name)
        wanted |= set(find_names(theirs[name])) & theirs.keys() - bound_names(module) - _functions(module)
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


def _functions(module: cst.Module) -> set[str]:
    return {s.name.value for s in module.body if isinstance(s, (cst.FunctionDef, cst.ClassDef))}


def _defined_by(statement: Statement) -> set[str]:
    """Names that a constant or a function at the top level defines; imports are mended elsewhere."""
    match statement:
        case cst.FunctionDef(name=name):
            return {name.value}
        case cst.SimpleStatementLine(body=[cst.Assign(targets=targets)]):
            return {t.target.value for t in targets if isinstance(t.target, cst.Name)}
        case _:
            return set()
