"""The walk over a candidate's syntax tree that judges each import, name, attribute and call in it. Pure."""

import ast
import sys
from dataclasses import dataclass, field

from kbtui.domain.verdict import Reason
from kbtui.evaluation import policy_tables as tables
from kbtui.evaluation.policy_source import is_plain_text, leads_to_allowed, own_names

_LIBRARIES = ("torch", "triton")
_IN_PLACE = "_"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not allowed, where, and what to do about it."""

    line: int
    reason: Reason
    what: str
    do: str


@dataclass(slots=True)
class PolicyVisitor(ast.NodeVisitor):
    """Collects findings. ``aliases``: what a name stands for, e.g. ``tl`` for ``triton.language``."""

    allowed_ops: frozenset[str]
    findings: list[Finding] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    jit_functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    own: frozenset[str] = frozenset()
    uses_jit: bool = False
    in_kernel: bool = False

    def visit_Module(self, node: ast.Module) -> None:
        # Aliases first: a function may use an import that stands below it.
        for inner in ast.walk(node):
            if isinstance(inner, ast.Import | ast.ImportFrom):
                self._take_aliases(inner)
        self.own = own_names(node) - self.aliases.keys()
        self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name not in tables.IMPORTS:
                self._refuse_import(node, alias.name)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = "." * node.level + (node.module or "")
        if module not in tables.IMPORTS and module.split(".")[0] not in _LIBRARIES:
            return self._refuse_import(node, module)
        for alias in node.names:
            path = f"{module}.{alias.name}"
            if path in tables.IMPORTS or leads_to_allowed(path):
                continue
            if alias.name == "*":
                self._refuse(node, Reason.POLICY_IMPORT, f"`from {module} import *`", "name what you import")
            else:
                self._judge_path(node, path)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._refuse_hooks(node)
        outside = self.in_kernel
        if any(self._is_jit(d) for d in node.decorator_list):
            self.jit_functions[node.name] = node
            self.in_kernel = True
        self.generic_visit(node)
        self.in_kernel = outside

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._refuse(node, Reason.POLICY_NAME, "async code", "call kernels one after another")

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for base in node.bases:
            if self._path(base) in ("torch.Tensor", "torch.nn.Parameter"):
                self._refuse(node, Reason.POLICY_NAME, "a subclass of Tensor", "return a plain torch.Tensor")
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        renamed = node.id == "__name__" and not isinstance(node.ctx, ast.Load)
        dunder = node.id.startswith("__") and (node.id not in tables.DUNDERS_ALLOWED or renamed)
        if dunder or node.id in tables.BUILTINS_REFUSED:
            self._refuse(node, Reason.POLICY_NAME, f"`{node.id}`", "a kernel does not need it")
        elif isinstance(node.ctx, ast.Load) and node.id in self.aliases:
            self._judge_path(node, self.aliases[node.id])

    def visit_Attribute(self, node: ast.Attribute) -> None:
        path = self._path(node)
        if path is None:
            if not isinstance(node.ctx, ast.Load) and not self._is_own(node.value):
                self._refuse(node, Reason.POLICY_NAME, f"assignment to `.{node.attr}`", "keep state in a name")
            self._judge_attribute(node)
            self.generic_visit(node)
        elif not isinstance(node.ctx, ast.Load):
            self._refuse(node, Reason.POLICY_NAME, f"assignment to `{path}`", "leave torch and triton as they are")
        else:
            self._judge_path(node, path)

    def visit_Call(self, node: ast.Call) -> None:
        match node.func:
            case ast.Name(id="getattr" | "hasattr"):
                return self._judge_getattr(node)
            case ast.Name(id="type") if len(node.args) != 1:
                self._refuse(node, Reason.POLICY_NAME, "a class made by type()", "use plain functions")
            case ast.Attribute(attr="format", value=value) if not is_plain_text(value):
                self._refuse(node, Reason.POLICY_NAME, "`.format` reaching into objects", "use an f-string")
            case ast.Attribute(attr=name, value=value) if self._is_method(node.func) and not self._is_limits(value):
                self._judge_method(node, name)
        self.generic_visit(node)

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        for name in node.kwd_attrs:
            reached = ast.copy_location(ast.Attribute(ast.Name("matched", ast.Load()), name, ast.Load()), node)
            call = ast.copy_location(ast.Call(reached, [], []), node)
            ast.fix_missing_locations(call)
            self.visit(call)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.MatMult) and not self._allows("matmul"):
            self._refuse(node, Reason.POLICY_NAME, "the operator @", "compute it in your kernel with tl.dot")
        self.generic_visit(node)

    def _judge_getattr(self, node: ast.Call) -> None:
        match node.args:
            case [target, ast.Constant(value=str(name)), *rest]:
                attribute = ast.copy_location(ast.Attribute(target, name, ast.Load()), node)
                self.visit(attribute)
                for argument in rest:
                    self.visit(argument)
            case _:
                self._refuse(node, Reason.POLICY_NAME, "getattr with a computed name", "write the attribute out")

    def _judge_attribute(self, node: ast.Attribute) -> None:
        name = node.attr
        if (name.startswith("__") and name not in tables.DUNDERS_ALLOWED) or name in tables.ATTRIBUTES_REFUSED:
            self._refuse(node, Reason.POLICY_NAME, f"`.{name}`", "stay within your own kernel")
        elif name in tables.METHODS_LEAVE and not self.in_kernel and not self._allows(name):
            self._refuse(node, Reason.POLICY_NAME, f"`.{name}`", "keep values on the device")

    def _is_own(self, value: ast.expr) -> bool:
        """``self.weight = ...`` and ``kernel_function.cache = ...``: nothing of anybody else's."""
        return isinstance(value, ast.Name) and value.id in self.own

    def _is_method(self, function: ast.Attribute) -> bool:
        return not self.in_kernel and self._path(function) is None

    def _is_limits(self, value: ast.expr) -> bool:
        """``torch.finfo(...)``, whose ``max`` and ``min`` are numbers."""
        return isinstance(value, ast.Call) and self._path(value.func) in ("torch.finfo", "torch.iinfo")

    def _judge_method(self, node: ast.AST, name: str) -> None:
        plain = name[: -len(_IN_PLACE)] if name.endswith(_IN_PLACE) else name
        if plain in tables.METHODS_COMPUTE and not (self._allows(plain) or self._allows(name)):
            self._refuse(node, Reason.POLICY_NAME, f"`.{name}` computes", "compute it in your own kernel")

    def _judge_path(self, node: ast.AST, path: str) -> None:
        library, _, below = path.partition(".")
        if self._leads_out(below):
            return self._refuse(node, Reason.POLICY_NAME, f"`{path}`", "stay within your own kernel")
        if library not in _LIBRARIES:
            return
        if path == "triton.jit":
            self.uses_jit = True
        if any(path == whole or path.startswith(f"{whole}.") for whole in tables.TRITON_WHOLE):
            return
        allowed = tables.TORCH if library == "torch" else tables.TRITON
        dtype = below.partition(".")[0]
        if below in allowed or (dtype in tables.DTYPES and below == f"{dtype}.itemsize"):
            return
        if library == "torch" and self._allows(below.split(".")[-1]):
            return
        self._refuse(node, Reason.POLICY_NAME, f"`{path}`", self._advice(path))

    def _advice(self, path: str) -> str:
        if path in _LIBRARIES or path in tables.IMPORTS:
            return "use its names one by one, do not pass the module around"
        if path.startswith("torch.cuda") or path.startswith("triton."):
            return "timers, streams, graphs and the runtime are the harness's"
        return "it is not among the views and allocations of the policy; compute it in your own kernel"

    def _leads_out(self, below: str) -> bool:
        """Modules name the modules they import, and their private parts: ``typing.sys``, ``math.__loader__``."""
        parts = set(below.split(".")) - tables.NOT_THE_STANDARD_LIBRARYS
        private = any(part.startswith("_") and part not in tables.DUNDERS_ALLOWED for part in parts)
        return private or bool(parts & sys.stdlib_module_names)

    def _allows(self, name: str) -> bool:
        return name in self.allowed_ops

    def _is_jit(self, decorator: ast.expr) -> bool:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        return self._path(target) == "triton.jit"

    def _path(self, node: ast.expr) -> str | None:
        """``torch.cuda.Event`` for an attribute chain that starts at an imported name; None for any other."""
        names: list[str] = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.aliases:
            return None
        return ".".join((self.aliases[node.id], *reversed(names)))

    def _take_aliases(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                self.aliases[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            elif alias.asname:
                self.aliases[alias.asname] = alias.name
            else:
                root = alias.name.split(".")[0]
                self.aliases[root] = root

    def _refuse_hooks(self, node: ast.FunctionDef) -> None:
        if node.name.startswith("__") and node.name not in tables.DUNDERS_ALLOWED:
            self._refuse(node, Reason.POLICY_NAME, f"a method `{node.name}`", "use plain functions")

    def _refuse_import(self, node: ast.stmt, module: str) -> None:
        self._refuse(node, Reason.POLICY_IMPORT, f"import of `{module}`", "import torch, triton and math only")

    def _refuse(self, node: ast.AST, reason: Reason, what: str, do: str) -> None:
        self.findings.append(Finding(getattr(node, "lineno", 0), reason, what, do))
