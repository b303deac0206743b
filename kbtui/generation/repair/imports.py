"""Adds the imports a kernel file uses but lacks. Pure."""

import libcst as cst
import libcst.matchers as m

_IMPORTS = {
    "torch": "import torch",
    "triton": "import triton",
    "tl": "import triton.language as tl",
    "math": "import math",
    "libdevice": "from triton.language.extra import libdevice",
}


def add_missing(module: cst.Module) -> tuple[cst.Module, tuple[str, ...]]:
    bound = _bound(module)
    used = {cst.ensure_type(n, cst.Name).value for n in m.findall(module, m.Name())}
    missing = [line for name, line in _IMPORTS.items() if name in used and name not in bound]
    if not missing:
        return module, ()
    at = _after_header(module)
    body = [*module.body[:at], *(cst.parse_statement(line) for line in missing), *module.body[at:]]
    return module.with_changes(body=body), tuple(f"added {line}" for line in missing)


def _bound(module: cst.Module) -> set[str]:
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


def _after_header(module: cst.Module) -> int:
    """Where imports may go: after a docstring and ``from __future__`` lines."""
    at = 1 if module.get_docstring() is not None else 0
    future = m.SimpleStatementLine(body=[m.ImportFrom(module=m.Name("__future__")), m.ZeroOrMore()])
    while at < len(module.body) and m.matches(module.body[at], future):
        at += 1
    return at
