"""Questions about a candidate's syntax tree that the policy asks. Pure."""

import ast
from collections import Counter

from kbtui.evaluation import policy_tables as tables

_NAME = "__name__"


def any_used(tree: ast.Module, functions: dict[str, ast.FunctionDef]) -> bool:
    """Whether a name of one is read outside its own body. One walk, for a source may hold thousands."""
    inside = {name: _reads(function) for name, function in functions.items()}
    everywhere = _reads(tree)
    return any(everywhere[name] > reads[name] for name, reads in inside.items())


def _reads(node: ast.AST) -> Counter[str]:
    return Counter(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def own_names(tree: ast.Module) -> frozenset[str]:
    """``self`` and ``ctx`` of methods, and the module's functions."""
    return frozenset({"self", "ctx"} | {n.name for n in tree.body if isinstance(n, ast.FunctionDef)})


def leads_to_allowed(path: str) -> bool:
    """``triton.runtime.driver``: below it lies something that may be used, and only that is judged fair."""
    library, _, below = path.partition(".")
    allowed = {"torch": tables.TORCH, "triton": tables.TRITON}.get(library, frozenset())
    return any(name.startswith(f"{below}.") for name in allowed)


def is_plain_text(value: ast.expr) -> bool:
    """A literal whose fields name no attribute or item."""
    match value:
        case ast.Constant(value=str(text)):
            fields = text.replace("{{", "").split("{")[1:]
            return all("." not in (name := f.partition("}")[0].partition(":")[0]) and "[" not in name for f in fields)
    return False


def without_main_block(tree: ast.Module, source: str) -> ast.Module:
    """Without what runs only as a script: a candidate is a module, unless it names itself ``__main__``."""
    blocks = [n for n in tree.body if isinstance(n, ast.If) and _is_main_test(n)]
    if source.count(_NAME) != len(blocks):
        return tree
    return ast.Module([n for n in tree.body if n not in blocks], tree.type_ignores)


def _is_main_test(node: ast.If) -> bool:
    match node.test:
        case ast.Compare(left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant(value="__main__")]):
            return not node.orelse
    return False
