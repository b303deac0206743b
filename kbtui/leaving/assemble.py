"""Several modules of ours as one file that stands alone: what ``check.py`` is in an exported folder. Pure."""

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: Its name at the top level, and below it what comes last in any script.
_OURS = "kbtui"
_GUARD = "if __name__ =="


@dataclass(frozen=True, slots=True)
class _Module:
    docstring: str
    imports: tuple[ast.Import | ast.ImportFrom, ...]
    body: str


def one_file(script: str, parts: Sequence[str]) -> str:
    """``script`` with the definitions of ``parts`` in it, each under its docstring's first words as a comment.

    Imports are merged at the top, those of our own modules dropped; the script's ``if __name__`` block ends the file.
    No two modules may define one name.
    """
    main, *others = (_module(text) for text in (script, *parts))
    definitions, _, guard = main.body.partition(_GUARD)
    sections = [f"# {part.docstring.splitlines()[0].rstrip('.')}\n\n\n{part.body}" for part in others]
    imports = _merged(node for module in (main, *others) for node in module.imports)
    head = f'"""{main.docstring}"""\n\n{imports}'
    return "\n\n\n".join(text.strip("\n") for text in (head, definitions, *sections, _GUARD + guard)) + "\n"


def _module(text: str) -> _Module:
    tree = ast.parse(text)
    imports = tuple(node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))
    start = max(node.end_lineno or node.lineno for node in imports)
    docstring = ast.get_docstring(tree, clean=False) or ""
    return _Module(docstring, imports, "\n".join(text.splitlines()[start:]).strip("\n"))


def _merged(nodes: Iterable[ast.Import | ast.ImportFrom]) -> str:
    """The standard library's, then the others; within both whole modules first, as isort has it."""
    plain: set[str] = set()
    named: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            plain |= {alias.name for alias in node.names}
        elif node.module and node.module.partition(".")[0] != _OURS:
            named.setdefault(node.module, set()).update(alias.name for alias in node.names)
    lines = {f"import {name}": name for name in sorted(plain)}
    lines |= {f"from {module} import {_sorted(named[module])}": module for module in sorted(named)}
    library = [line for line, module in lines.items() if not _is_installed(module)]
    installed = [line for line, module in lines.items() if _is_installed(module)]
    return "\n".join([*library, "", *installed])


def _sorted(names: Iterable[str]) -> str:
    return ", ".join(sorted(names, key=lambda name: (name.islower(), name)))


def _is_installed(module: str) -> bool:
    return module.partition(".")[0] in ("torch", "triton")
