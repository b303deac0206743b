"""What the referee keeps from one candidate to the next: inputs that a seed makes, and the answers to them.

The gate asks every candidate of a run the same questions, so that they are drawn and answered once. Bounded in bytes;
what was not asked for longest goes first.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch

from kbtui.evaluation.roles.oracle import Expected

#: Of the room, at most this part for one question: a few large ones must not drive out all others.
LARGEST_SHARE = 4

Question = tuple[Any, ...]


class Known:
    """Inputs by question, and what is expected of them once somebody wanted to know."""

    def __init__(self, room_bytes: int) -> None:
        self._room_bytes = room_bytes
        self._inputs: OrderedDict[Question, tuple[Any, ...]] = OrderedDict()
        self._expected: dict[Question, list[Expected]] = {}

    def inputs(self, question: Question, make: Callable[[], tuple[Any, ...]]) -> tuple[Any, ...]:
        """Kept inputs, or those that ``make`` makes now. Not to be written to."""
        if question not in self._inputs:
            made = make()
            if _bytes_of(made) * LARGEST_SHARE > self._room_bytes:
                return made
            self._inputs[question] = made
        self._inputs.move_to_end(question)
        self._make_room()
        return self._inputs[question]

    def expected(self, question: Question, answer: Callable[[tuple[Any, ...]], list[Expected]]) -> list[Expected]:
        """The answer to a question whose inputs are kept; ``answer`` gets copies, for a reference may write to them."""
        if question not in self._expected:
            copies = tuple(x.clone() if isinstance(x, torch.Tensor) else x for x in self._inputs[question])
            self._expected[question] = answer(copies)
            self._make_room()
        return self._expected[question]

    def __contains__(self, question: Question) -> bool:
        return question in self._inputs

    @property
    def n_bytes(self) -> int:
        answers = sum(e.n_bytes for expected in self._expected.values() for e in expected)
        return sum(map(_bytes_of, self._inputs.values())) + answers

    def clear(self) -> None:
        self._inputs.clear()
        self._expected.clear()

    def _make_room(self) -> None:
        """The newest question stays, whatever it takes."""
        while len(self._inputs) > 1 and self.n_bytes > self._room_bytes:
            oldest, _ = self._inputs.popitem(last=False)
            self._expected.pop(oldest, None)


def _bytes_of(inputs: tuple[Any, ...]) -> int:
    return sum(x.nbytes for x in inputs if isinstance(x, torch.Tensor))
