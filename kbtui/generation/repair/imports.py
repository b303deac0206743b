"""Adds the imports a kernel file uses but lacks, and leaves out foreign ones that it does not use. Pure."""

import libcst as cst
import libcst.matchers as m

from kbtui.generation.rewrites.syntax import dotted

_IMPORTS = {
    "torch": "import torch",
    "triton": "import triton",
    "tl": "import triton.language as tl",
    "math": "import math",
    "libdevice": "from triton.language.extra import libdevice",
}


_OURS = frozenset({"torch", "triton", "math", "typing", "__future__"})


def drop_unused(module: cst.Module) -> tuple[cst.Module, tuple[str, ...]]:
    """Leaves out imports from elsewhere that nothing uses: models copy those of the reference they were shown."""
    used = {cst.ensure_type(n, cst.Name).value for s in module.body if not is_import(s) for n in m.findall(s, m.Name())}
    dropped = [s for s in module.body if is_import(s) and _is_foreign(s) and not (_bound_by(s) & used)]
    if not dropped:
        return module, ()
    notes = tuple(f"left out `{cst.Module([s]).code.strip()}`, which nothing uses" for s in dropped)
    return module.with_changes(body=[s for s in module.body if s not in dropped]), notes


def is_import(statement: cst.BaseStatement | cst.SimpleStatementLine) -> bool:
    return m.matches(statement, m.SimpleStatementLine(body=[m.Import() | m.ImportFrom()]))


def _is_foreign(statement: cst.BaseStatement | cst.SimpleStatementLine) -> bool:
    """Of no module that kernels are made with. What a star brings is not known, so it stays."""
    part = cst.ensure_type(statement, cst.SimpleStatementLine).body[0]
    if isinstance(part, cst.ImportFrom):
        relative = bool(part.relative) or part.module is None
        return not isinstance(part.names, cst.ImportStar) and (relative or _root(part.module) not in _OURS)
    return all(_root(alias.name) not in _OURS for alias in cst.ensure_type(part, cst.Import).names)


def _root(module: cst.BaseExpression | None) -> str:
    return dotted(module).split(".")[0] if module is not None else ""


def _bound_by(statement: cst.BaseStatement | cst.SimpleStatementLine) -> set[str]:
    return bound_names(cst.Module([cst.ensure_type(statement, cst.SimpleStatementLine)]))


def add_missing(module: cst.Module) -> tuple[cst.Module, tuple[str, ...]]:
    bound = bound_names(module)
    used = {cst.ensure_type(n, cst.Name).value for n in m.findall(module, m.Name())}
    missing = [line for name, line in _IMPORTS.items() if name in used and name not in bound]
    if not missing:
        return module, ()
    at = after_header(module)
    body = [*module.body[:at], *(cst.parse_statement(line) for line in missing), *module.body[at:]]
    return module.with_changes(body=body), tuple(f"added {line}" for line in missing)


def bound_names(module: cst.Module) -> set[str]:
    """Names that imports and assignments anywhere in the module bind."""
    names: set[str] = set()
    for alias in m.findall(module, m.ImportAlias()):
        alias = cst.ensure_type(alias, cst.ImportAlias)
        as_name = alias.asname.name if alias.asname is not None else None
        names.add(as_name.value if isinstance(as_name, cst.Name) else alias.evaluated_name.split(".")[0])
    for target in m.findall(module, m.AssignTarget(target=m.Name())):
        names.add(cst.ensure_type(cst.ensure_type(target, cst.AssignTarget).target, cst.Name).value)
    for param in m.findall(module, m.Param()):
        names.add(cst.ensure_type(param, cst.Param).name.value)
    return names


def after_header(module: cst.Module) -> int:
    """Where imports and constants may go: after a docstring and ``from __future__`` lines."""
    at = 1 if module.get_docstring() is not None else 0
    future = m.SimpleStatementLine(body=[m.ImportFrom(module=m.Name("__future__")), m.ZeroOrMore()])
    while at < len(module.body) and m.matches(module.body[at], future):
        at += 1
    return at
