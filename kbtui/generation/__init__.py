"""The generation plane: everything that proposes candidates."""

import difflib

from kbtui.domain.proposal import Hint
from kbtui.engine.ports import Generator
from kbtui.errors import UsageError
from kbtui.generation.playbook import Playbook
from kbtui.generation.rewrites.propose import Rewrites

NAMES = ("playbook", "rewrites", "llm")


def make_generators(
    names: tuple[str, ...], model: str | None, host: str | None, hints: tuple[Hint, ...] = ()
) -> dict[str, Generator]:
    """Generators by name, in the order named. ``model`` and ``host`` are the language model's.

    ``hints`` are all hints there are; a request brings the ones chosen for it.
    Raises UsageError on an unknown name (the nearest is named), and for ``llm`` without a model.
    """
    return {name: _make(name, model, host) for name in names}


def _make(name: str, model: str | None, host: str | None) -> Generator:
    match name:
        case "playbook":
            return Playbook()
        case "rewrites":
            return Rewrites()
        case "llm" if model:
            from kbtui.generation.llm import LlmGenerator  # httpx is slow to import, and most runs ask no model

            return LlmGenerator(model, host)
        case "llm":
            raise UsageError("the generator llm needs a model", "name one with --model, e.g. qwen2.5-coder:7b")
        case _:
            near = difflib.get_close_matches(name, NAMES, n=1, cutoff=0.4)
            guess = f"did you mean {near[0]}?" if near else f"there are {', '.join(NAMES)}"
            raise UsageError(f"unknown generator {name!r}", guess)


__all__ = ["NAMES", "make_generators"]
