"""fp32 dots in three TF32 passes: tensor cores, and an error like fp32's (relative L2 about 2e-7)."""

from collections.abc import Iterator

import libcst as cst

from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target
from kbtui.generation.rewrites.source import Replacement, Source
from kbtui.generation.rewrites.syntax import argument, calls_in, values_of, with_keyword, without_keywords

_CHOICES = ("tf32x3", "ieee")


def _edits(source: Source, target: Target) -> Iterator[Edit]:
    if "float32" not in target.dtypes:
        return
    for name, kernel in source.kernels.items():
        dots = calls_in(kernel, "dot")
        for precision in _CHOICES if dots else ():
            if all(_has(source, dot, precision) for dot in dots):
                continue
            changes: dict[cst.CSTNode, Replacement] = dict.fromkeys(dots, _setter(precision))
            yield Edit(source.code_with(changes), f"dots of {name} in {precision}", (("input_precision", precision),))


def _has(source: Source, dot: cst.Call, precision: str) -> bool:
    """Whether a dot is in this precision already, by a literal or by a constant of the module."""
    given = argument(dot, "input_precision")
    values = [given] if not isinstance(given, cst.Name) else values_of(source.module, given.value)
    return [v.evaluated_value for v in values if isinstance(v, cst.SimpleString)] == [precision]


def _setter(precision: str) -> Replacement:
    def set_precision(node: cst.CSTNode) -> cst.CSTNode:
        call = without_keywords(cst.ensure_type(node, cst.Call), ("allow_tf32",))
        return with_keyword(call, "input_precision", cst.SimpleString(f'"{precision}"'))

    return set_precision


REWRITE = Rewrite(
    "dot_precision",
    "a kernel with tl.dot on a problem with fp32 inputs",
    (Bottleneck.NO_TENSOR_CORES, Bottleneck.COMPUTE),
    ("three_pass_tf32",),
    _edits,
)
