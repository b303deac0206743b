"""Where tensors lie in an arena, as plain values that cross a pipe. Pure, standard library only."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

ALIGNMENT = 512
#: Bytes left free after every tensor, which hold poison: who reads on past its end must not find a neighbour.
GUARD = 512

ITEM_BYTES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2, "int8": 1,
    "uint8": 1, "bool": 1,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Slot:
    """A contiguous tensor at ``offset`` bytes into the arena."""

    offset: int
    shape: tuple[int, ...]
    dtype: str

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * ITEM_BYTES[self.dtype]


@dataclass(frozen=True, slots=True)
class Constant:
    """An argument that is no tensor: a number, a truth value, a string or None."""

    value: Any


Argument = Slot | Constant


@dataclass(frozen=True, slots=True)
class Layout:
    """Arguments of one shape, in one or more copies with different values, and the mailbox for the outputs."""

    copies: tuple[tuple[Argument, ...], ...]
    outputs: tuple[Slot, ...]

    @property
    def end(self) -> int:
        """Bytes of the arena in use."""
        slots = [a for copy in self.copies for a in copy if isinstance(a, Slot)]
        return max((s.offset + s.n_bytes for s in (*slots, *self.outputs)), default=0)

    def to_plain(self) -> dict[str, Any]:
        return {
            "copies": [[_plain(a) for a in copy] for copy in self.copies],
            "outputs": [_plain(o) for o in self.outputs],
        }


def layout_from_plain(plain: dict[str, Any]) -> Layout:
    copies = tuple(tuple(_argument(a) for a in copy) for copy in plain["copies"])
    return Layout(copies, tuple(_slot(o) for o in plain["outputs"]))


def place(sizes: Iterable[tuple[tuple[int, ...], str]], start: int = 0) -> tuple[tuple[Slot, ...], int]:
    """Slots one after the other from ``start``, aligned and apart, and the first free byte after them."""
    slots = []
    for shape, dtype in sizes:
        slot = Slot(start, tuple(shape), dtype)
        slots.append(slot)
        start = end_of_guard(slot)
    return tuple(slots), start


def end_of_guard(slot: Slot) -> int:
    """The first byte behind a tensor and the poison after it."""
    return slot.offset + -(-(slot.n_bytes + GUARD) // ALIGNMENT) * ALIGNMENT


def _plain(argument: Argument) -> dict[str, Any]:
    match argument:
        case Slot(offset, shape, dtype):
            return {"offset": offset, "shape": list(shape), "dtype": dtype}
        case Constant(value):
            return {"value": value}


def _argument(plain: dict[str, Any]) -> Argument:
    return _slot(plain) if "offset" in plain else Constant(plain["value"])


def _slot(plain: dict[str, Any]) -> Slot:
    return Slot(plain["offset"], tuple(plain["shape"]), plain["dtype"])
