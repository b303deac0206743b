"""Finds the function that launches the kernels, names it kernel_function and checks its arguments. Pure."""

import libcst as cst
import libcst.matchers as m

from kbtui.domain.verdict import Reason
from kbtui.generation.repair.values import Rejected
from kbtui.generation.rewrites.syntax import find_names, is_jit

_ENTRY = "kernel_function"


def mend_entry_point(module: cst.Module, inputs: tuple[str, ...]) -> tuple[cst.Module, tuple[str, ...]] | Rejected:
    """The module with a ``kernel_function`` that takes the inputs, or why it cannot have one."""
    functions = [s for s in module.body if isinstance(s, cst.FunctionDef)]
    if not any(is_jit(f) for f in functions) and not m.findall(module, m.ClassDef()):
        return Rejected(Reason.NO_TRITON_KERNEL, "no function under @triton.jit in the reply")
    if any(isinstance(s, cst.ClassDef) and s.name.value == "ModelNew" for s in module.body):
        return module, ()
    notes: tuple[str, ...] = ()
    entry = next((f for f in functions if f.name.value == _ENTRY and not is_jit(f)), None)
    if entry is None:
        found = _launcher(functions, inputs)
        if found is None:
            return Rejected(Reason.NO_ENTRY_POINT, f"no function that launches the kernel; define {_ENTRY}")
        module, notes = _renamed(module, found, functions)
        entry = found
    if not _accepts(entry, len(inputs)):
        takes = ", ".join(p.name.value for p in entry.params.params)
        return Rejected(Reason.SIGNATURE, f"{_ENTRY} takes ({takes}) but is called with ({', '.join(inputs)})")
    return module, notes


def _launcher(functions: list[cst.FunctionDef], inputs: tuple[str, ...]) -> cst.FunctionDef | None:
    """The host function that launches a kernel, itself or through another; the outermost, the last of several."""
    hosts = [f for f in functions if not is_jit(f)]
    reaching = {f.name.value for f in hosts if m.findall(f.body, m.Call(func=m.Subscript()))}
    for _ in hosts:
        reaching |= {f.name.value for f in hosts if reaching & set(find_names(f.body))}
    candidates = [f for f in hosts if f.name.value in reaching]
    called = {n for f in candidates for n in find_names(f.body)}
    outermost = [f for f in candidates if f.name.value not in called] or candidates
    fitting = [f for f in outermost if _accepts(f, len(inputs))] or outermost
    return fitting[-1] if fitting else None


def _renamed(
    module: cst.Module, entry: cst.FunctionDef, functions: list[cst.FunctionDef]
) -> tuple[cst.Module, tuple[str, ...]]:
    """The entry renamed, and a kernel that had taken the name renamed before it."""
    notes: list[str] = []
    changed: cst.CSTNode = module
    if any(f.name.value == _ENTRY and is_jit(f) for f in functions):
        changed = changed.visit(_Rename(_ENTRY, "device_kernel"))  # type: ignore[assignment]
        notes.append(f"kernel {_ENTRY} renamed to device_kernel")
    changed = changed.visit(_Rename(entry.name.value, _ENTRY))  # type: ignore[assignment]
    notes.append(f"entry point {entry.name.value} renamed to {_ENTRY}")
    return cst.ensure_type(changed, cst.Module), tuple(notes)


def _accepts(function: cst.FunctionDef, n_inputs: int) -> bool:
    params = [*function.params.posonly_params, *function.params.params]
    n_required = sum(p.default is None for p in params)
    keyword_only = any(p.default is None for p in function.params.kwonly_params)
    takes_any = isinstance(function.params.star_arg, cst.Param)
    return n_required <= n_inputs and (takes_any or n_inputs <= len(params)) and not keyword_only


class _Rename(cst.CSTTransformer):
    """A module-level name wherever it is read or defined; attributes and keywords of that name stay."""

    def __init__(self, old: str, new: str) -> None:
        super().__init__()
        self.old, self.new = old, new

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:  # noqa: N802
        return updated_node.with_changes(value=self.new) if original_node.value == self.old else updated_node

    def leave_Attribute(  # noqa: N802
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:  # noqa: N802
        return updated_node.with_changes(keyword=original_node.keyword)
