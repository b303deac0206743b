"""Inputs of a problem by shape, without their values. Values; standard library only."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor argument: sizes and strides in elements, dtype as torch names it (``float16``)."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: str


Scalar = int | float | bool | str | None
Argument = TensorSpec | Scalar


@dataclass(frozen=True, slots=True)
class ShapeInputs:
    """The arguments of one call, for one of the problem's shapes."""

    shape: str
    arguments: tuple[Argument, ...]


def inputs_to_plain(inputs: ShapeInputs) -> dict[str, Any]:
    return {"shape": inputs.shape, "arguments": [_argument_to_plain(a) for a in inputs.arguments]}


def inputs_from_plain(plain: dict[str, Any]) -> ShapeInputs:
    return ShapeInputs(plain["shape"], tuple(_argument_from_plain(a) for a in plain["arguments"]))


def _argument_to_plain(argument: Argument) -> Any:
    if isinstance(argument, TensorSpec):
        return {"shape": list(argument.shape), "stride": list(argument.stride), "dtype": argument.dtype}
    return argument


def _argument_from_plain(plain: Any) -> Argument:
    if isinstance(plain, dict):
        return TensorSpec(tuple(plain["shape"]), tuple(plain["stride"]), plain["dtype"])
    scalar: Scalar = plain
    return scalar
