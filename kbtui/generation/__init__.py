"""The generation plane: everything that proposes candidates."""

import difflib
from dataclasses import dataclass

from kbtui.engine.ports import Generator
from kbtui.errors import UsageError
from kbtui.generation.playbook import Playbook
from kbtui.generation.rewrites.propose import Rewrites

NAMES = ("playbook", "rewrites", "llm")


@dataclass(frozen=True, slots=True)
class LlmServer:
    """Where a language model answers: Ollama at ``ollama_host``, or whatever speaks OpenAI's form at ``url``.

    ``shares_gpu``: it runs on the machine whose GPU times candidates.
    """

    ollama_host: str | None = None
    url: str | None = None
    shares_gpu: bool = False


def make_generators(
    names: tuple[str, ...], model: str | None = None, server: LlmServer = LlmServer()
) -> dict[str, Generator]:
    """Generators by name, in the order named. ``model`` and ``server`` are the language model's.

    Raises UsageError on an unknown name (the nearest is named), and for ``llm`` without a model.
    """
    return {name: _make(name, model, server) for name in names}


def _make(name: str, model: str | None, server: LlmServer) -> Generator:
    match name:
        case "playbook":
            return Playbook()
        case "rewrites":
            return Rewrites()
        case "llm" if model:
            from kbtui.generation.llm import (
                LlmGenerator,
                make_chat,
            )  # httpx is slow to import, and most runs ask no model

            chat = make_chat(server.ollama_host, server.url)
            return LlmGenerator(model, chat, shares_gpu=server.shares_gpu)
        case "llm":
            raise UsageError("the generator llm needs a model", "name one with --model, e.g. qwen2.5-coder:7b")
        case _:
            near = difflib.get_close_matches(name, NAMES, n=1, cutoff=0.4)
            guess = f"did you mean {near[0]}?" if near else f"there are {', '.join(NAMES)}"
            raise UsageError(f"unknown generator {name!r}", guess)


__all__ = ["NAMES", "LlmServer", "make_generators"]
