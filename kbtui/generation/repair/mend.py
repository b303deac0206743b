"""Mends a source so that the gate can run it: imports, decorators, constexpr, loops, entry point. Pure."""

from collections.abc import Callable, Sequence

import libcst as cst

from kbtui.domain.verdict import Reason
from kbtui.generation.repair import entry_point, foreign, imports, kernels, loop_ranges, top_level
from kbtui.generation.repair.completing import complete
from kbtui.generation.repair.syntax_prefix import nesting, parses
from kbtui.generation.repair.values import Mended, Rejected

#: A mender gives the module back changed or as it is, with a line on each thing it mended.
Mender = Callable[[cst.Module], tuple[cst.Module, tuple[str, ...]]]

_MENDERS: tuple[Mender, ...] = (
    kernels.mend_decorators,
    top_level.drop_examples,
    foreign.drop_foreign,
    kernels.mend_annotations,
    loop_ranges.mend_loops,
    kernels.mend_constexpr,
    imports.drop_unused,
    imports.add_missing,
)
_MAX_NESTING = 60


def _completed_from(parent: str) -> Mender:
    return lambda module: complete(module, cst.parse_module(parent))


def mend(code: str, inputs: Sequence[str], parent: str | None = None) -> Mended | Rejected:
    """A source with ``kernel_function(*inputs)``, or why there cannot be one. A good source comes back as it is.

    Args:
        inputs: names of the problem's inputs, in order; their number is what counts.
        parent: the kernel it is about, which may define what the code uses and leaves out.
    """
    if nesting(code) > _MAX_NESTING or not parses(code):
        return Rejected(Reason.SYNTAX, "the code is not valid Python")
    try:
        module = cst.parse_module(code)
        notes: list[str] = []
        menders = _MENDERS if parent is None else (*_MENDERS[:-1], _completed_from(parent), _MENDERS[-1])
        for mender in menders:
            module, said = mender(module)
            notes += said
        named = entry_point.mend_entry_point(module, tuple(inputs))
    except (cst.ParserSyntaxError, RecursionError, ValueError):
        return Rejected(Reason.SYNTAX, "the code is not valid Python")
    if isinstance(named, Rejected):
        return named
    module, said = named
    source = module.code
    if not parses(source):
        return Rejected(Reason.SYNTAX, "the code is not valid Python after mending")
    return Mended(source, (*notes, *said))
