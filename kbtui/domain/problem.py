"""What is to be made faster: a reference, its inputs over a set of shapes, a tolerance, a first kernel."""

import ast
import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kbtui.domain.device import DeviceSpec


class ShapeRole(StrEnum):
    """What a shape is for: TUNE is timed, HIDDEN only verified, PROXY small enough for the interpreter."""

    TUNE = "tune"
    HIDDEN = "hidden"
    PROXY = "proxy"


class ProblemFormat(StrEnum):
    FOLDER = "folder"
    KERNELBENCH = "kernelbench"


@dataclass(frozen=True, slots=True)
class Shape:
    """One size of the problem's inputs.

    Attributes:
        name: as shown, e.g. ``4096x16384``.
        dims: named sizes in elements, passed to ``make_inputs`` as a dict.
        role: see ShapeRole.
        from_rung: the lowest rung that times this shape (1 for the screening shape).
        dtype: where it differs from the problem's.
    """

    name: str
    dims: tuple[tuple[str, int], ...]
    role: ShapeRole = ShapeRole.TUNE
    from_rung: int = 1
    dtype: str | None = None

    def as_dict(self) -> dict[str, int]:
        return dict(self.dims)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far from the float64 oracle an output may be.

    Attributes:
        floor: relative L2 error always allowed; the limit is max(2 x the reference's own error, floor).
        element: bound on one element's error, as a multiple of that limit times the output's RMS.
    """

    floor: float
    element: float = 200.0


TOLERANCE_FLOOR: Mapping[str, float] = {"float32": 1e-6, "float16": 1e-3, "bfloat16": 8e-3}
ITEM_BYTES: Mapping[str, int] = {"float32": 4, "float16": 2, "bfloat16": 2, "float64": 8}


@dataclass(frozen=True, slots=True)
class ProblemSpec:
    """The declared part of a problem (``problem.toml``).

    ``bytes_formula`` and ``flops_formula`` are arithmetic over the shape's dims and ``itemsize``: the fewest
    bytes that must cross device memory and the operations that must be done.
    """

    name: str
    summary: str
    dtype: str
    family: str | None
    shapes: tuple[Shape, ...]
    distributions: tuple[str, ...]
    bytes_formula: str
    flops_formula: str
    tolerance: Tolerance
    allowed_ops: tuple[str, ...] = ()
    target_speedup: float | None = None
    params: tuple[tuple[str, str], ...] = ()

    def shapes_of(self, role: ShapeRole) -> tuple[Shape, ...]:
        return tuple(s for s in self.shapes if s.role is role)

    def timed_at(self, rung: int) -> tuple[Shape, ...]:
        """The shapes a rung times; every problem has at least one."""
        return tuple(s for s in self.shapes_of(ShapeRole.TUNE) if s.from_rung <= rung)

    def dtype_of(self, shape: Shape) -> str:
        return shape.dtype or self.dtype

    def bytes_moved(self, shape: Shape) -> float:
        return evaluate_formula(self.bytes_formula, self._names(shape))

    def flops(self, shape: Shape) -> float:
        return evaluate_formula(self.flops_formula, self._names(shape))

    def bound_us(self, shape: Shape, device: DeviceSpec) -> float:
        """The problem's own bound on a device, microseconds: no correct kernel is faster."""
        return device.bound_us(self.bytes_moved(shape), self.flops(shape), self.dtype_of(shape))

    def _names(self, shape: Shape) -> dict[str, float]:
        return {**shape.as_dict(), "itemsize": ITEM_BYTES[self.dtype_of(shape)]}


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem with its sources. ``kernel_source`` is None where no first kernel was given (KernelBench files)."""

    spec: ProblemSpec
    format: ProblemFormat
    path: str
    reference_source: str
    kernel_source: str | None


_BINARY: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}


def evaluate_formula(formula: str, names: Mapping[str, float]) -> float:
    """Arithmetic on named numbers; raises ValueError on anything else, naming what it met, and where none comes out.

    May raise ZeroDivisionError and OverflowError as arithmetic does.
    """

    def value(node: ast.expr) -> float:
        match node:
            case ast.Constant(value=int() | float() as number):
                return float(number)
            case ast.Name(id=name) if name in names:
                return float(names[name])
            case ast.Name(id=name):
                raise ValueError(f"unknown name {name!r} in formula {formula!r}; known: {', '.join(sorted(names))}")
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return _BINARY[type(op)](value(left), value(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand)
            case _:
                raise ValueError(f"formula {formula!r} may hold only numbers, names and + - * / // **")

    try:
        tree = ast.parse(formula, mode="eval")
        found = value(tree.body)
    except SyntaxError as error:
        raise ValueError(f"formula {formula!r} is not an expression: {error.msg}") from None
    except (RecursionError, MemoryError):
        raise ValueError(f"formula {formula[:40]!r}... is nested too deeply") from None
    if not isinstance(found, float) or not math.isfinite(found):
        raise ValueError(f"formula {formula!r} gives {found}")
    return found
