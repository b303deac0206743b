"""exp2 for exp: e^x = 2^(x log2 e), the exponential the hardware has."""

from collections.abc import Iterator

import libcst as cst

from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target
from kbtui.generation.rewrites.source import Source
from kbtui.generation.rewrites.syntax import calls_in, expression

_LOG2_E = "1.4426950408889634"


def _edits(source: Source, _target: Target) -> Iterator[Edit]:
    for name, kernel in source.kernels.items():
        calls = calls_in(kernel, "exp")
        if calls:
            yield Edit(source.code_with(dict.fromkeys(calls, _power_of_two)), f"exp2 for exp in {name}", ())


def _power_of_two(node: cst.CSTNode) -> cst.CSTNode:
    call = cst.ensure_type(node, cst.Call)
    exponent = call.args[0].value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    scaled = cst.BinaryOperation(exponent, cst.Multiply(), expression(_LOG2_E))
    return call.with_changes(func=expression("tl.exp2"), args=[call.args[0].with_changes(value=scaled)])


REWRITE = Rewrite("exp2", "a kernel that calls tl.exp", (Bottleneck.COMPUTE,), ("exp2_for_exp",), _edits)
