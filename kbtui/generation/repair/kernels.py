"""Mends Triton kernels: the jit decorator, annotations Triton does not know, sizes that must be constexpr. Pure."""

import libcst as cst
import libcst.matchers as m

from kbtui.generation.rewrites.syntax import calls_in, dotted, expression, find_names, is_jit

_DEVICE_CALLS = ("program_id", "load", "store", "arange", "dot", "atomic_add", "num_programs", "make_block_ptr")
_WRONG_JIT = frozenset(
    {"tl.jit", "triton.kernel", "tl.kernel", "triton.language.jit", "triton_jit", "triton.jit_kernel"}
)
#: Calls whose arguments at these positions (or all, for -1) are shapes, and must be known when compiling.
_SHAPE_CALLS = {"arange": (0, 1), "zeros": (0,), "full": (0,), "static_range": (-1,), "reshape": (1,), "view": (1,)}


def mend_decorators(module: cst.Module) -> tuple[cst.Module, tuple[str, ...]]:
    """``@triton.jit`` on functions that use device calls without it, and in place of decorators there are not."""
    notes: list[str] = []

    def mended(function: cst.FunctionDef) -> cst.FunctionDef:
        wrong = [d for d in function.decorators if dotted(d.decorator) in _WRONG_JIT]
        if wrong:
            notes.append(f"{function.name.value}: @{dotted(wrong[0].decorator)} became @triton.jit")
            others = [d for d in function.decorators if d not in wrong]
            return function.with_changes(decorators=[*others, _jit()])
        if not is_jit(function) and calls_in(function.body, *_DEVICE_CALLS) and not _launches(function):
            notes.append(f"{function.name.value}: added @triton.jit")
            return function.with_changes(decorators=[*function.decorators, _jit()])
        if is_jit(function) and not _imports_jit(module):
            bare = [d for d in function.decorators if dotted(d.decorator) == "jit"]
            if bare:
                notes.append(f"{function.name.value}: @jit became @triton.jit")
                return function.with_changes(decorators=[_jit() if d in bare else d for d in function.decorators])
        return function

    return _map_functions(module, mended), tuple(notes)


def mend_annotations(module: cst.Module) -> tuple[cst.Module, tuple[str, ...]]:
    """Annotations of a kernel's parameters other than ``tl.constexpr`` go: many do not exist and raise at import."""
    notes: list[str] = []

    def mended(function: cst.FunctionDef) -> cst.FunctionDef:
        if not is_jit(function):
            return function
        changed = [p for p in function.params.params if p.annotation is not None and _annotation(p) != "tl.constexpr"]
        if not changed:
            return function
        notes.append(f"{function.name.value}: mended the annotations of {', '.join(p.name.value for p in changed)}")
        params = [_annotated(p, _annotation(p).endswith("constexpr")) if p in changed else p
                  for p in function.params.params]  # fmt: skip
        return function.with_changes(params=function.params.with_changes(params=params))

    return _map_functions(module, mended), tuple(notes)


def mend_constexpr(module: cst.Module) -> tuple[cst.Module, tuple[str, ...]]:
    """Parameters used as sizes of tiles become ``tl.constexpr``."""
    notes: list[str] = []

    def mended(function: cst.FunctionDef) -> cst.FunctionDef:
        if not is_jit(function):
            return function
        sizes = _size_names(function)
        changed = [p for p in function.params.params if p.name.value in sizes and p.annotation is None]
        if not changed:
            return function
        notes.append(f"{function.name.value}: made {', '.join(p.name.value for p in changed)} constexpr")
        params = [_annotated(p, True) if p in changed else p for p in function.params.params]
        return function.with_changes(params=function.params.with_changes(params=params))

    return _map_functions(module, mended), tuple(notes)


def _size_names(function: cst.FunctionDef) -> set[str]:
    names: set[str] = set()
    for call_name, positions in _SHAPE_CALLS.items():
        for call in calls_in(function.body, call_name):
            args = [a.value for a in call.args]
            chosen = args if positions == (-1,) else [args[p] for p in positions if p < len(args)]
            names.update(n for a in chosen if not m.findall(a, m.Call()) for n in find_names(a))
    return names


def _annotation(param: cst.Param) -> str:
    return dotted(param.annotation.annotation) if param.annotation is not None else ""


def _annotated(param: cst.Param, constexpr: bool) -> cst.Param:
    if not constexpr:
        return param.with_changes(annotation=None)
    return param.with_changes(annotation=cst.Annotation(expression("tl.constexpr")))


def _jit() -> cst.Decorator:
    return cst.Decorator(expression("triton.jit"))


def _launches(function: cst.FunctionDef) -> bool:
    return bool(m.findall(function.body, m.Call(func=m.Subscript())))


def _imports_jit(module: cst.Module) -> bool:
    aliases = [cst.ensure_type(a, cst.ImportAlias) for a in m.findall(module, m.ImportAlias())]
    return any(a.evaluated_name == "jit" or a.evaluated_alias == "jit" for a in aliases)


def _map_functions(module: cst.Module, change) -> cst.Module:  # type: ignore[no-untyped-def]
    body = [change(s) if isinstance(s, cst.FunctionDef) else s for s in module.body]
    same = all(a is b for a, b in zip(body, module.body, strict=True))
    return module if same else module.with_changes(body=body)
