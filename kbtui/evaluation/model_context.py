"""What a candidate's ``ModelNew`` needs beside its inputs (KernelBench's format). A value; no torch here."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ModelContext:
    """How the reference's Model was built.

    Attributes:
        init_inputs: arguments of its constructor, JSON values.
        state_names: names of its state, in the order in which the values follow the inputs.
        seed: for torch's generator before it is built.
    """

    init_inputs: tuple[Any, ...] = ()
    state_names: tuple[str, ...] = ()
    seed: int = 0


def context_from_plain(plain: dict[str, Any] | None) -> ModelContext:
    if plain is None:
        return ModelContext()
    return ModelContext(tuple(plain["init_inputs"]), tuple(plain["state_names"]), plain["seed"])
