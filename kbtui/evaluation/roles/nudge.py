"""Small changes of inputs that are shared by who makes them and who judges what came of them.

A kernel that keeps answers, and knows its inputs again by a glance at some of them, is right as long as inputs change
as a whole. So between calls a stretch of each input is overwritten with another stretch of the same input: values
stay of their kind, most stay as they were, and whoever has not read them all again is wrong. Effects: writes tensors.
"""

import contextlib
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

#: Part of an input that a wide nudge overwrites. A narrow one changes a single value: a glance at every hundredth
#: value misses it, where it would see a stretch; a wide one shows where one value is lost in a long sum.
SHARE = 64
NARROW_ODDS = 2 / 3


@dataclass(frozen=True, slots=True)
class Undo:
    """What lay where a nudge wrote."""

    window: torch.Tensor
    before: torch.Tensor

    def __call__(self) -> None:
        self.window.copy_(self.before)


@dataclass(frozen=True, slots=True)
class Planned:
    """A stretch that is to be overwritten, and the one that it gets."""

    window: torch.Tensor
    source: torch.Tensor

    def __call__(self) -> Undo:
        undo = Undo(self.window, self.window.clone())
        self.window.copy_(self.source)
        return undo


def planned(inputs: Sequence[Any], seed: str) -> list[Planned]:
    """A stretch of every floating-point tensor (contiguous), the same for the same sizes and seed. Writes nothing."""
    rng = random.Random(seed)
    flat = [
        value.reshape(-1) for value in inputs
        if isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel() > 1
    ]  # fmt: skip
    return [Planned(*_stretches(value, rng)) for value in flat]


def nudge(inputs: Sequence[Any], seed: str) -> list[Undo]:
    """Overwrite what is planned for these inputs and this seed, now."""
    return [one() for one in planned(inputs, seed)]


def around_calls(
    copies: Sequence[Sequence[Any]], seed: str, n_calls: int
) -> Callable[[int], contextlib.AbstractContextManager[None]]:
    """What nudges call i's inputs (copy i, in turns) for as long as it lasts, for calls 0 to ``n_calls``.

    All of it is planned here: between calls the device would wait for the host, or sleep for it.
    """
    plans = [planned(copies[i % len(copies)], f"{seed}/{i}") for i in range(n_calls)]

    @contextlib.contextmanager
    def around(i: int) -> Iterator[None]:
        undo = [one() for one in plans[i]]
        yield
        for one in undo:
            one()

    return around


def nudged(inputs: Sequence[Any], seed: str) -> tuple[Any, ...]:
    """Copies of inputs, nudged."""
    copies = tuple(x.clone() if isinstance(x, torch.Tensor) else x for x in inputs)
    nudge(copies, seed)
    return copies


def _stretches(flat: torch.Tensor, rng: random.Random) -> tuple[torch.Tensor, torch.Tensor]:
    """Two stretches of one length that do not overlap, in the two halves, in either order."""
    n, half = flat.numel(), flat.numel() // 2
    width = 1 if rng.random() < NARROW_ODDS else max(1, n // SHARE)
    low, high = rng.randint(0, half - width), rng.randint(half, n - width)
    first, second = (low, high) if rng.random() < 0.5 else (high, low)
    return flat[first : first + width], flat[second : second + width]
