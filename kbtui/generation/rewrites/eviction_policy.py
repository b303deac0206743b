"""What leaves the cache first: eviction policies of loads and stores."""

from collections import defaultdict
from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.passed import texts_passed
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target
from kbtui.generation.rewrites.source import Replacement, Source
from kbtui.generation.rewrites.syntax import argument, calls_in, find_names, with_keyword, without_keywords

_FIRST, _LAST = "evict_first", "evict_last"


def _edits(source: Source, _target: Target) -> Iterator[Edit]:
    return (edit for edit, new in _choices(source) if new)


def _choices(source: Source) -> Iterator[tuple[Edit, bool]]:
    """Every choice of policies, and whether it is another than the kernel has."""
    for name, kernel in source.kernels.items():
        loads, stores = calls_in(kernel, "load"), calls_in(kernel, "store")
        again = _read_again(kernel, loads)
        if again:
            policies = {load: _LAST if load in again else _FIRST for load in loads} | dict.fromkeys(stores, _FIRST)
            yield _edit(source, policies, name, "keep what is read again, stream the rest", "reuse")
        if loads:
            yield _edit(source, dict.fromkeys(loads, _FIRST), name, "stream all loads", "loads_first")
            yield _edit(source, dict.fromkeys(loads, _LAST), name, "keep all loads", "loads_last")
        if stores:
            yield _edit(source, dict.fromkeys(stores, _FIRST), name, "stream all stores", "stores_first")


def _edit(source: Source, policies: dict[cst.Call, str], kernel: str, what: str, mode: str) -> tuple[Edit, bool]:
    changes: dict[cst.CSTNode, Replacement] = {call: _setter(policy) for call, policy in policies.items()}
    new = any(_present(source, kernel, call) != {policy} for call, policy in policies.items())
    return Edit(source.code_with(changes), f"{what} in {kernel}", (("eviction", mode),)), new


def _present(source: Source, kernel: str, call: cst.Call) -> frozenset[str]:
    """The policies a call may have now; one that names none has the empty one."""
    given = argument(call, "eviction_policy")
    return texts_passed(source, kernel, given) if given is not None else frozenset({""})


def _setter(policy: str) -> Replacement:
    def set_policy(node: cst.CSTNode) -> cst.CSTNode:
        call = without_keywords(cst.ensure_type(node, cst.Call), ("cache_modifier",))
        return with_keyword(call, "eviction_policy", cst.SimpleString(f'"{policy}"'))

    return set_policy


def _read_again(kernel: cst.FunctionDef, loads: list[cst.Call]) -> set[cst.Call]:
    """Loads whose pointer a later load of the kernel uses too."""
    pointers = {p.name.value for p in kernel.params.params}
    by_pointer: dict[str, list[cst.Call]] = defaultdict(list)
    for load in loads:
        address = argument(load, "pointer", 0)
        roots = [n for n in _roots(kernel, address) if n in pointers] if address is not None else []
        for root in roots[:1]:
            by_pointer[root].append(load)
    return {load for same in by_pointer.values() for load in same[:-1]}


def _roots(kernel: cst.FunctionDef, address: cst.BaseExpression) -> list[str]:
    """Names an address is made of, through one assignment."""
    names = find_names(address)
    assigned = [
        cst.ensure_type(a, cst.Assign).value
        for a in m.findall(kernel, m.Assign(targets=[m.AssignTarget(target=m.Name())]))
        if cst.ensure_type(cst.ensure_type(a, cst.Assign).targets[0].target, cst.Name).value == names[0]
    ]
    return names + [n for value in assigned for n in find_names(value)]


REWRITE = Rewrite(
    "eviction_policy",
    "a kernel that loads or stores",
    (Bottleneck.EXTRA_PASSES, Bottleneck.DRAM),
    ("stream_past_the_cache",),
    _edits,
)
