"""Conditions that a module's constants decide, ``ARCH >= 90 and ...`` where ``ARCH = 80`` say. Pure."""

import ast
from collections.abc import Mapping

from kbtui.generation.playbook.constants import Value


def decided(condition: str, constants: Mapping[str, Value]) -> bool | None:
    """Whether a condition, as source text, holds whatever else is the case; None where the constants do not say."""
    try:
        return _truth(ast.parse(condition.strip(), mode="eval").body, constants)
    except SyntaxError:
        return None


def _truth(test: ast.expr, constants: Mapping[str, Value]) -> bool | None:
    match test:
        case ast.BoolOp(op=ast.And(), values=parts):
            known = [_truth(part, constants) for part in parts]
            return False if False in known else (None if None in known else True)
        case ast.BoolOp(op=ast.Or(), values=parts):
            known = [_truth(part, constants) for part in parts]
            return True if True in known else (None if None in known else False)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            held = _truth(operand, constants)
            return None if held is None else not held
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _compared(_value(left, constants), op, _value(right, constants))
        case _:
            value = _value(test, constants)
            return None if value is None else bool(value)


def _value(node: ast.expr, constants: Mapping[str, Value]) -> Value | None:
    match node:
        case ast.Constant(value=int() | float() | str() as value):
            return value
        case ast.Name(id=name):
            return constants.get(name)
        case _:
            return None


def _compared(left: Value | None, op: ast.cmpop, right: Value | None) -> bool | None:
    """A comparison of two numbers, or of two texts for equality."""
    if left is None or right is None or isinstance(left, str) != isinstance(right, str):
        return None
    match op:
        case ast.Eq():
            return left == right
        case ast.NotEq():
            return left != right
    if isinstance(left, str) or isinstance(right, str):
        return None
    match op:
        case ast.Lt():
            return left < right
        case ast.LtE():
            return left <= right
        case ast.Gt():
            return left > right
        case ast.GtE():
            return left >= right
        case _:
            return None
