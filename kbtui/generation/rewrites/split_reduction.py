"""A program's long loop split among several programs, which add what they find into zeros with atomics.

``for s in range(0, n, T): acc += …`` and one store of ``tl.sum(acc)`` or ``acc`` become a part of the loop a program
along the grid's second axis and one atomic addition. The order of additions, and with it the last bit, may differ from
call to call.
"""

from collections.abc import Iterator

import libcst as cst

from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.loops import independent_loops, span_of
from kbtui.generation.rewrites.regrid import grid_size
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target
from kbtui.generation.rewrites.source import Launch, Replacement, Source, arguments_of
from kbtui.generation.rewrites.syntax import (
    argument,
    assigned_names,
    calls_in,
    code_of,
    dotted,
    expression,
    find_all,
    find_names,
    is_autotuned,
    values_of,
)

_PARTS = (4, 8, 16, 2)


def _edits(source: Source, target: Target) -> Iterator[Edit]:
    if target.dtypes != {"float32"}:
        return
    for launch in source.launches:
        name = launch.kernel
        alone = [x for x in source.launches if x.kernel == name] == [launch]
        size = grid_size(launch)
        if not alone or size is None or is_autotuned(source.kernels[name]):
            continue
        changes = _atomic_parts(source, launch)
        for parts in _PARTS if changes else ():
            grid = _set_grid(f"({code_of(size)}, {parts})")
            code = source.code_with({**(changes or {}), launch.call: grid})
            yield Edit(code, f"loop of {name} in {parts} parts added with atomics", (("parts", str(parts)),))


def _atomic_parts(source: Source, launch: Launch) -> dict[cst.CSTNode, Replacement] | None:
    """Changes to loop, store and allocation; None where the kernel is of another form."""
    kernel = source.kernels[launch.kernel]
    loops = find_all(kernel, cst.For)
    stores = calls_in(kernel, "store")
    ids = calls_in(kernel, "program_id")
    if len(loops) != 1 or loops != independent_loops(kernel) or len(stores) != 1 or calls_in(kernel, "atomic_add"):
        return None
    if any(code_of(c.args[0].value) != "0" for c in ids) or calls_in(loops[0], "store"):
        return None
    if not _stores_a_sum(kernel, loops[0], stores[0]):
        return None
    made = _allocation(source, launch, stores[0])
    if made is None:
        return None
    return {loops[0]: _part_of, stores[0]: _add, made.func: _zeros}


def _stores_a_sum(kernel: cst.FunctionDef, loop: cst.For, store: cst.Call) -> bool:
    """Whether what is stored is linear in one accumulator of the loop, and that accumulator begins at zero."""
    value = argument(store, "value", 1)
    while isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and value.func.attr.value == "to":
        value = value.func.value
    if isinstance(value, cst.Name) and assigned_names(kernel).count(value.value) == 1:
        bound = values_of(kernel, value.value)
        value = bound[0] if len(bound) == 1 and dotted(bound[0]) == "tl.sum" else value
    if isinstance(value, cst.Call) and dotted(value.func) == "tl.sum":
        value = value.args[0].value
    if not isinstance(value, cst.Name):
        return False
    updates = [s for line in loop.body.body for s in line.children if value.value in assigned_names(s)]
    first = [v for v in values_of(kernel, value.value) if dotted(v) != "tl.dot"]
    sums = len(updates) == 1 and (isinstance(updates[0], cst.AugAssign) or bool(calls_in(updates[0], "dot")))
    at_zero = len(first) == 1 and (dotted(first[0]) == "tl.zeros" or code_of(first[0]) in ("0.0", "0"))
    return sums and at_zero and assigned_names(kernel).count(value.value) == 2


def _allocation(source: Source, launch: Launch, store: cst.Call) -> cst.Call | None:
    """The ``torch.empty`` that the store's pointer comes from, where nothing else of the host writes it."""
    address = argument(store, "pointer", 0)
    given = arguments_of(source, launch)
    roots = [given[n] for n in find_names(address) if n in given] if address is not None else []
    name = roots[0].value if roots and isinstance(roots[0], cst.Name) else None
    made = values_of(launch.host, name) if name else []
    if len(made) == 1 and isinstance(made[0], cst.Call) and dotted(made[0].func) in ("torch.empty", "torch.empty_like"):
        return made[0]
    return None


def _part_of(node: cst.CSTNode) -> cst.CSTNode:
    loop = cst.ensure_type(node, cst.For)
    span = span_of(loop)
    assert span is not None
    _, stop, step = span
    part = f"(tl.cdiv(tl.cdiv({stop}, {step}), tl.num_programs(1)) * {step})"
    call = cst.ensure_type(loop.iter, cst.Call)
    args = list(call.args)
    args[0] = args[0].with_changes(value=expression(f"tl.program_id(1) * {part}"))
    args[1] = args[1].with_changes(value=expression(f"tl.minimum((tl.program_id(1) + 1) * {part}, {stop})"))
    return loop.with_changes(iter=call.with_changes(args=args))


def _add(node: cst.CSTNode) -> cst.CSTNode:
    call = cst.ensure_type(node, cst.Call)
    kept = [a for a in call.args if a.keyword is None or a.keyword.value in ("mask", "pointer")]
    kept = [*kept, *(a.with_changes(keyword=cst.Name("val")) for a in call.args
                     if a.keyword is not None and a.keyword.value == "value")]  # fmt: skip
    return call.with_changes(func=expression("tl.atomic_add"), args=kept)


def _zeros(node: cst.CSTNode) -> cst.CSTNode:
    return expression(dotted(node).replace("torch.empty", "torch.zeros"))


def _set_grid(grid: str) -> Replacement:
    def change(node: cst.CSTNode) -> cst.CSTNode:
        call = cst.ensure_type(node, cst.Call)
        subscript = cst.ensure_type(call.func, cst.Subscript)
        return call.with_changes(func=subscript.with_changes(slice=[cst.SubscriptElement(cst.Index(expression(grid)))]))

    return change


REWRITE = Rewrite(
    "split_reduction",
    "one loop over `range(0, n, T)` that sums, one store of the sum, on a problem in fp32",
    (Bottleneck.TOO_FEW_PROGRAMS, Bottleneck.LATENCY),
    ("divide_the_reduction", "split_k_atomics"),
    _edits,
)
