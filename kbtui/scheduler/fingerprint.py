"""What a kernel does, told apart from its text: launches, loops, reductions, dots, atomics, passes over memory. Pure.

Read off the syntax tree with the standard library alone. Names, formatting, comments, tiles, warps and the order of
definitions do not count; how often memory is passed over, what is reduced and how work is shared out do. It names a
structure; it proves nothing about it.
"""

import ast
import hashlib
from collections import Counter
from dataclasses import dataclass

_REDUCTIONS = frozenset({"sum", "max", "min", "argmax", "argmin", "reduce", "xor_sum", "associative_scan", "cumsum"})
_DOTS = frozenset({"dot", "dot_scaled"})
_BLOCKS = frozenset({"make_block_ptr", "make_tensor_descriptor"})
_UNROLLED = "static_range"


@dataclass(frozen=True, slots=True, order=True)
class KernelShape:
    """One jit kernel that is launched.

    Attributes:
        axes: grid axes it reads a program id of.
        persistent: whether it strides over work by the number of programs.
        loops: loop nests, each as its depth below the kernel, in source order.
        loads, stores: by the depth of the loop they are in, outermost first: a pass over memory each.
        reductions, dots, atomics: how many of each, reductions by kind.
        carries: whether a loop rescales what it carries (an online pass), not only adds to it.
        blocks: whether memory is addressed by block pointers or descriptors.
    """

    axes: int
    persistent: bool
    loops: tuple[int, ...]
    loads: tuple[int, ...]
    stores: tuple[int, ...]
    reductions: tuple[tuple[str, int], ...]
    dots: int
    atomics: int
    carries: bool
    blocks: bool


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A module's kernels in the order they are launched, and how many launches there are."""

    launches: int
    kernels: tuple[KernelShape, ...]

    @property
    def label(self) -> str:
        """What a person reads, and eight hexadecimal digits that tell any two apart: ``2 launches, 3 passes #1f…``."""
        passes = sum(max(1, len(k.loops)) for k in self.kernels)
        parts = [_many(self.launches, "launch", "launches"), _many(passes, "pass", "passes")]
        parts += [word for word, there in (("dot", any(k.dots for k in self.kernels)),
                                           ("atomics", any(k.atomics for k in self.kernels)),
                                           ("persistent", any(k.persistent for k in self.kernels)),
                                           ("online", any(k.carries for k in self.kernels))) if there]  # fmt: skip
        return f"{', '.join(parts)} #{hashlib.sha256(repr(self).encode()).hexdigest()[:8]}"


def fingerprint(source: str) -> Fingerprint | None:
    """What the launched kernels of a source do; None of a source without syntax or without a launch."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    functions = {f.name: f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)}
    kernels = {name: f for name, f in functions.items() if any(_is_jit(d) for d in f.decorator_list)}
    launched = [n for f in functions.values() if f.name not in kernels for n in _launched(f, kernels)]
    if not launched:
        return None
    return Fingerprint(len(launched), tuple(sorted(_shape(kernels[n], kernels) for n in launched)))


def same_structure(one: str, other: str) -> bool:
    """Whether two sources do the same; sources that cannot be read are alike only if they are the same text."""
    first, second = fingerprint(one), fingerprint(other)
    return first == second if first is not None and second is not None else one == other


def structure_of(source: str, parent_source: str | None, parent_structure: str | None, family: str) -> str:
    """The parent's structure where a source does what its parent does; else its own, named after what it does."""
    if parent_source is not None and parent_structure is not None and same_structure(parent_source, source):
        return parent_structure
    found = fingerprint(source)
    return f"{family}/{found.label}" if found is not None else f"{family}/unread"


def _is_jit(decorator: ast.expr) -> bool:
    name = decorator.func if isinstance(decorator, ast.Call) else decorator
    return _last(name) == "jit"


def _last(node: ast.expr) -> str:
    match node:
        case ast.Attribute(attr=attr):
            return attr
        case ast.Name(id=name):
            return name
        case _:
            return ""


def _launched(host: ast.FunctionDef, kernels: dict[str, ast.FunctionDef]) -> list[str]:
    """Kernels launched by ``kernel[grid](...)``, in source order; a choice of kernels counts each of them."""
    choices = {
        target.id: [n.id for n in ast.walk(a.value) if isinstance(n, ast.Name) and n.id in kernels]
        for a in ast.walk(host) if isinstance(a, ast.Assign)
        for target in a.targets if isinstance(target, ast.Name)
    }  # fmt: skip
    calls = [c for c in ast.walk(host) if isinstance(c, ast.Call) and isinstance(c.func, ast.Subscript)]
    names = [c.func.value.id for c in calls if isinstance(c.func, ast.Subscript) and isinstance(c.func.value, ast.Name)]
    return [k for name in names for k in ([name] if name in kernels else choices.get(name, []))]


def _shape(kernel: ast.FunctionDef, kernels: dict[str, ast.FunctionDef]) -> KernelShape:
    seen = _Seen(kernels)
    seen.each(kernel.body)
    counts = seen.counts
    return KernelShape(
        axes=len(seen.axes),
        persistent=_strides_over_work(kernel),
        loops=tuple(seen.loops),
        loads=tuple(seen.loads),
        stores=tuple(seen.stores),
        reductions=tuple(sorted((name, counts[name]) for name in _REDUCTIONS if counts[name])),
        dots=sum(counts[name] for name in _DOTS),
        atomics=sum(n for name, n in counts.items() if name.startswith("atomic_")),
        carries=seen.carries,
        blocks=any(counts[name] for name in _BLOCKS),
    )


def _strides_over_work(kernel: ast.FunctionDef) -> bool:
    """Whether a loop's step is made of the number of programs, through one name or none."""
    counts = {target.id for a in ast.walk(kernel) if isinstance(a, ast.Assign) and _counts_programs(a.value, set())
              for target in a.targets if isinstance(target, ast.Name)}  # fmt: skip
    loops = [loop.iter for loop in ast.walk(kernel) if isinstance(loop, ast.For)]
    return any(isinstance(i, ast.Call) and len(i.args) > 2 and _counts_programs(i.args[2], counts) for i in loops)


def _counts_programs(node: ast.expr, names: set[str]) -> bool:
    return any(
        (isinstance(n, ast.Call) and _last(n.func) == "num_programs") or (isinstance(n, ast.Name) and n.id in names)
        for n in ast.walk(node)
    )


def _bounds(line: ast.stmt) -> list[str]:
    """What a counted loop's range is made of, as text; empty for anything else."""
    if isinstance(line, ast.For) and isinstance(line.iter, ast.Call) and _last(line.iter.func) == "range":
        return [ast.dump(a) for a in line.iter.args]
    return []


class _Seen(ast.NodeVisitor):
    """Walks one kernel and the jit functions it calls, keeping count by the depth of loops."""

    def __init__(self, kernels: dict[str, ast.FunctionDef]) -> None:
        self.kernels = kernels
        self.counts: Counter[str] = Counter()
        self.axes: set[str] = set()
        self.loops: list[int] = []
        self.loads: list[int] = []
        self.stores: list[int] = []
        self.carries = False
        self._depth = 0
        self._inside: list[str] = []

    def visit_For(self, node: ast.For) -> None:
        unrolled = isinstance(node.iter, ast.Call) and _last(node.iter.func) == _UNROLLED
        self.visit(node.iter)
        if unrolled:
            self.each(node.body)
            return
        self.loops.append(self._depth)
        self._depth += 1
        self.each(node.body)
        self._depth -= 1

    def visit_While(self, node: ast.While) -> None:
        self.loops.append(self._depth)
        self._depth += 1
        self.visit(node.test)
        self.each(node.body)
        self._depth -= 1

    def visit_Call(self, node: ast.Call) -> None:
        name = _last(node.func)
        self.counts[name] += 1
        match name:
            case "program_id":
                given = [*node.args, *(k.value for k in node.keywords)]
                self.axes.add(ast.dump(given[0]) if given else "")
            case "load":
                self.loads.append(self._depth)
            case "store":
                self.stores.append(self._depth)
            case "maximum" | "minimum":
                self.carries |= self._depth > 0
        if isinstance(node.func, ast.Name) and name in self.kernels and name not in self._inside:
            self._inside.append(name)
            self.each(self.kernels[name].body)
            self._inside.pop()
        self.generic_visit(node)

    def each(self, body: list[ast.stmt]) -> None:
        """Statements of one block; a loop that goes on where the one before it stopped is the same pass."""
        stopped: str | None = None
        for line in body:
            bounds = _bounds(line)
            if len(bounds) > 1:
                goes_on, stopped = bounds[0] == stopped, bounds[1]
                if goes_on:
                    continue
            self.visit(line)


def _many(n: int, one: str, more: str) -> str:
    return f"{n} {one if n == 1 else more}"
