"""Leaves out functions and classes on the host that the kernel does not need. Pure.

Models copy the reference that they were shown, and how its inputs are made, beside their kernel, or add a test of it.
The gate refuses what those import and call.
"""

from collections.abc import Mapping

import libcst as cst

from kbtui.generation.rewrites.syntax import find_names, is_jit

_ENTRIES = ("kernel_function", "ModelNew")
#: What a problem defines, in either of its forms.
_OF_PROBLEMS = frozenset({"reference", "make_inputs", "Model", "get_inputs", "get_init_inputs"})
Host = cst.FunctionDef | cst.ClassDef
Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement


def drop_foreign(module: cst.Module) -> tuple[cst.Module, tuple[str, ...]]:
    """The module with what its entry point reaches, and all that is no host function.

    Where it has no entry point yet, any host function may become it but those named like a problem's own.
    """
    hosts = {host.name.value: host for s in module.body if (host := _host(s)) is not None}
    named = {n for s in module.body if _host(s) is None for n in find_names(s)}
    entries = [name for name in _ENTRIES if name in hosts]
    kept = _reached(hosts, named | set(entries or (hosts.keys() - _OF_PROBLEMS)))
    dropped = [name for name in hosts if name not in kept]
    if not dropped:
        return module, ()
    body = [s for s in module.body if (host := _host(s)) is None or host.name.value in kept]
    return module.with_changes(body=body), (f"left out {', '.join(dropped)}, which the kernel does not use",)


def _host(statement: Statement) -> Host | None:
    """A class, or a function that is no kernel."""
    match statement:
        case cst.ClassDef():
            return statement
        case cst.FunctionDef() if not is_jit(statement):
            return statement
        case _:
            return None


def _reached(hosts: Mapping[str, Host], names: set[str]) -> set[str]:
    """Those of the hosts that the names lead to, directly or through each other."""
    reached: set[str] = set()
    while new := (names & hosts.keys()) - reached:
        reached |= new
        names = {n for name in new for n in find_names(hosts[name])}
    return reached
