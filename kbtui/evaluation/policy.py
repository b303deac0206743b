"""The static part of the gate: what a candidate's source names. Pure.

It reads only text, so it can be fooled, and every check it makes is made again when the kernel runs. It is here to
say at once, with a line, what is not allowed, and to cost nothing.
"""

import ast
import textwrap
from collections.abc import Iterator

from kbtui.domain.problem import ProblemSpec
from kbtui.domain.verdict import Proof, Reason, Verdict, rejected, verified
from kbtui.evaluation import policy_tables as tables
from kbtui.evaluation.policy_source import any_used, without_main_block
from kbtui.evaluation.policy_visitor import Finding, PolicyVisitor

_STAGE = 0
_MAX_SOURCE_CHARS = 200_000


def check_policy(source: str, spec: ProblemSpec) -> Verdict:
    """Imports, names, an entry point, a Triton kernel that is used. The first finding by line is the verdict."""
    tree = _parse(source)
    if isinstance(tree, Verdict):
        return tree
    findings = find_all(without_main_block(tree, source), spec.allowed_ops)
    if findings:
        first = min(findings, key=lambda f: f.line)
        more = f" ({len(findings) - 1} more)" if len(findings) > 1 else ""
        return rejected(first.reason, _STAGE, Proof.NONE, f"{first.what}; {first.do}{more}", first.line or None)
    return verified(_STAGE, Proof.NONE, "within the policy")


def check_signature(source: str, n_inputs: int) -> Verdict:
    """Whether ``kernel_function`` can be called with the reference's inputs, all by position."""
    tree = _parse(source)
    if isinstance(tree, Verdict):
        return tree
    entry = _entry_point(tree)
    if entry is None:
        return _no_entry_point()
    if isinstance(entry, ast.ClassDef):
        return verified(_STAGE, Proof.NONE, f"{entry.name} is called as a module")
    fault = _signature_fault(entry.args, n_inputs)
    if fault:
        return rejected(Reason.SIGNATURE, _STAGE, Proof.NONE, f"kernel_function {fault}", entry.lineno)
    return verified(_STAGE, Proof.NONE, f"kernel_function takes {n_inputs} inputs")


def find_all(tree: ast.Module, allowed_ops: tuple[str, ...] = ()) -> tuple[Finding, ...]:
    """Every finding in a module, in no particular order."""
    visitor = PolicyVisitor(frozenset(name.split(".")[-1] for name in allowed_ops))
    visitor.visit(tree)
    return (*visitor.findings, *_structure(tree, visitor))


def explain(spec: ProblemSpec) -> str:
    """The policy in plain words, for this problem."""
    computing = ", ".join(spec.allowed_ops) if spec.allowed_ops else "none: your own Triton kernels compute everything"
    return "\n".join((
        f"What a candidate for {spec.name} may do",
        "",
        f"define        {tables.ENTRY_POINT}(*inputs) -> output, or KernelBench's class {tables.MODEL_ENTRY_POINT}",
        "launch        at least one @triton.jit function of its own",
        f"compute with  {computing}",
        _row("import", sorted(tables.IMPORTS)),
        _row("torch", [*sorted(tables.TORCH - tables.DTYPES), "dtypes", "views, copies and shapes of tensors"]),
        _row("triton", [*sorted(tables.TRITON), "all of triton.language inside kernels"]),
        "",
        "Refused, with the line: files, processes, threads, timers, streams, graphs, events, other modules;",
        _row("builtins", sorted(n for n in tables.BUILTINS_REFUSED if not n.startswith("_"))),
        "attributes that start with two underscores; patching torch or triton; subclasses of Tensor;",
        "tensor methods that compute or bring values to the host.",
        "",
        "This is read off the source. Whatever slips past it is looked for again when the kernel runs.",
    ))  # fmt: skip


def _parse(source: str) -> ast.Module | Verdict:
    if len(source) > _MAX_SOURCE_CHARS:
        detail = f"{len(source)} characters of source; keep it under {_MAX_SOURCE_CHARS}"
        return rejected(Reason.SYNTAX, _STAGE, Proof.NONE, detail)
    try:
        return ast.parse(source)
    except SyntaxError as error:
        return rejected(Reason.SYNTAX, _STAGE, Proof.NONE, f"{error.msg}; mend the line", error.lineno)
    except (ValueError, RecursionError, MemoryError) as error:
        return rejected(Reason.SYNTAX, _STAGE, Proof.NONE, f"it cannot be parsed: {error}; send plain Python")


def _structure(tree: ast.Module, visitor: PolicyVisitor) -> Iterator[Finding]:
    """An entry point, and a kernel that something refers to."""
    if _entry_point(tree) is None:
        verdict = _no_entry_point()
        what, _, do = verdict.detail.partition("; ")
        yield Finding(_last_line(tree), verdict.reason, what, do)
    if not visitor.jit_functions and not visitor.uses_jit:
        yield Finding(
            _last_line(tree), Reason.NO_TRITON_KERNEL, "no @triton.jit function", "write the kernel in Triton"
        )
    elif visitor.jit_functions and not any_used(tree, visitor.jit_functions):
        name, function = next(iter(visitor.jit_functions.items()))
        do = "launch it from kernel_function with kernel[grid](...)"
        yield Finding(function.lineno, Reason.NO_TRITON_KERNEL, f"the kernel {name} is never used", do)


def _entry_point(tree: ast.Module) -> ast.FunctionDef | ast.ClassDef | None:
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == tables.ENTRY_POINT]
    classes = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == tables.MODEL_ENTRY_POINT]
    return next(iter(functions + classes), None)  # type: ignore[operator]


def _no_entry_point() -> Verdict:
    detail = f"no {tables.ENTRY_POINT}; define `def {tables.ENTRY_POINT}(*inputs)` that takes the reference's inputs"
    return rejected(Reason.NO_ENTRY_POINT, _STAGE, Proof.NONE, detail)


def _signature_fault(arguments: ast.arguments, n_inputs: int) -> str | None:
    positional = [*arguments.posonlyargs, *arguments.args]
    n_required = len(positional) - len(arguments.defaults)
    needed = [a.arg for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is None]
    if needed:
        return f"needs {', '.join(needed)} by keyword; take the {n_inputs} inputs by position"
    if n_required > n_inputs:
        return f"needs {n_required} arguments; the reference has {n_inputs} inputs"
    if len(positional) < n_inputs and arguments.vararg is None:
        return f"takes {len(positional)} arguments; the reference has {n_inputs} inputs"
    return None


def _last_line(tree: ast.Module) -> int:
    return max((n.end_lineno or 0 for n in tree.body), default=1)


def _row(title: str, names: list[str]) -> str:
    indent = " " * 14
    return textwrap.fill(", ".join(names), 110, initial_indent=f"{title:14}", subsequent_indent=indent)
