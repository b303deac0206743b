"""One division and many multiplications: a / b becomes a * (1 / b), so that 1 / b is computed once a row."""

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from kbtui.domain.profile import Bottleneck
from kbtui.generation.rewrites.rewrite import Edit, Rewrite, Target
from kbtui.generation.rewrites.source import Source


def _edits(source: Source, _target: Target) -> Iterator[Edit]:
    for name, kernel in source.kernels.items():
        divisions = [
            d
            for d in m.findall(kernel, m.BinaryOperation(operator=m.Divide()))
            if not isinstance(cst.ensure_type(d, cst.BinaryOperation).left, (cst.Float, cst.Integer))
        ]
        if divisions:
            yield Edit(source.code_with(dict.fromkeys(divisions, _multiplied)), f"reciprocals in {name}", ())


def _multiplied(node: cst.CSTNode) -> cst.CSTNode:
    division = cst.ensure_type(node, cst.BinaryOperation)
    inverse = cst.BinaryOperation(
        cst.Float("1.0"), cst.Divide(), division.right, lpar=[cst.LeftParen()], rpar=[cst.RightParen()]
    )
    return division.with_changes(operator=cst.Multiply(), right=inverse)


REWRITE = Rewrite("reciprocal", "a kernel that divides by a value", (Bottleneck.COMPUTE,), ("reciprocal_once",), _edits)
