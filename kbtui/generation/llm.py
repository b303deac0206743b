"""The language-model generator. Effects: talks to an Ollama server."""

import math
import threading
from collections import deque

from kbtui.domain.candidate import Attachment, Origin, Proposal, source_sha
from kbtui.domain.proposal import ProposalRequest
from kbtui.generation.ollama_chat import OllamaChat, Reply, ServerFailedError
from kbtui.generation.prompt import build_prompt
from kbtui.generation.repair import Mended, Rejected, repair
from kbtui.generation.signature import input_names

_MAX_REPLIES = 2
_TRIES = 3
_BACK_OFF_S = 1.0
#: Characters a token of code takes at least, and tokens left for a reply.
_CHARS_PER_TOKEN = 3.0
_REPLY_TOKENS = 4096
_MAX_CONTEXT = 32768


class LlmGenerator:
    """Asks a model for better kernels. ``stop`` ends a reply that is under way, at once.

    Attributes:
        rejected: replies no kernel could be made of, newest last; they go into the next prompts.
    """

    name = "llm"

    def __init__(self, model: str, host: str | None = None, chat: OllamaChat | None = None) -> None:
        self.model = model
        self.chat = chat or OllamaChat(host)
        self.rejected: deque[Rejected] = deque(maxlen=3)
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    def propose(self, request: ProposalRequest) -> tuple[Proposal, ...]:
        """At most two proposals, from as many replies and one more where one was rejected.

        Raises UsageError (the model is not pulled) and DeviceError (no server, or it goes on failing).
        """
        self._stopped.clear()
        wanted = min(request.limit, _MAX_REPLIES)
        seen, fresh = set(request.seen), list[Proposal]()
        for number in range(wanted + 1 if wanted else 0):
            if len(fresh) == wanted or self._stopped.is_set():
                break
            proposal = self._one(request, number)
            if proposal is not None and source_sha(proposal.source) not in seen:
                seen.add(source_sha(proposal.source))
                fresh.append(proposal)
        return tuple(fresh)

    def _one(self, request: ProposalRequest, number: int) -> Proposal | None:
        prompt = build_prompt(request, self.rejected)
        reply = self._ask(prompt, request.seed * 1000 + number)
        if reply.ended == "cancelled":
            return None
        made = repair(reply.text, input_names(request.problem, request.parent_source))
        if isinstance(made, Rejected):
            self.rejected.append(made)
            return None
        return self._proposal(request, prompt, reply, made)

    def _ask(self, prompt: str, seed: int) -> Reply:
        """One reply; failures that may pass are tried again, a bounded number of times."""
        options: dict[str, float | int] = {
            "seed": seed % (1 << 31),
            "temperature": 0.7,
            "num_ctx": context_tokens(prompt),
            "num_predict": _REPLY_TOKENS,
        }
        for attempt in range(_TRIES):
            try:
                return self.chat.reply(self.model, prompt, options, self._stopped)
            except ServerFailedError:
                if attempt == _TRIES - 1 or self._stopped.wait(_BACK_OFF_S * 2**attempt):
                    raise
        raise AssertionError("unreachable")

    def _proposal(self, request: ProposalRequest, prompt: str, reply: Reply, made: Mended) -> Proposal:
        structure = request.parent.structure if request.parent is not None else f"{request.family or 'kernel'}/llm"
        hint = request.hints[0].id if request.hints else None
        answered = f"answered in {reply.wall_s:.1f} s" + (
            f", {reply.reply_tokens} tokens" if reply.reply_tokens is not None else ""
        )
        cut = (f"the reply ended early ({reply.ended})",) if reply.ended in ("length", "timeout") else ()
        return Proposal(
            made.source,
            Origin("llm", self.model, hint),
            structure,
            f"{self.model}: {_first_words(hint)}",
            (*made.notes, *cut, answered),
            (
                Attachment("prompt.md", prompt.encode(errors="surrogatepass")),
                Attachment("reply.txt", reply.text.encode(errors="surrogatepass")),
            ),
        )


def context_tokens(prompt: str) -> int:
    """A context that holds the prompt and a reply: a power of two from 4096 to 32768 tokens."""
    needed = len(prompt) / _CHARS_PER_TOKEN + _REPLY_TOKENS
    return min(max(4096, 1 << math.ceil(math.log2(needed))), _MAX_CONTEXT)


def _first_words(hint: str | None) -> str:
    return hint.replace("_", " ") if hint else "free proposal"


def list_models(host: str | None = None) -> tuple[str, ...]:
    """Models the server at ``host`` holds. Raises DeviceError where none answers."""
    return OllamaChat(host).list_models()


def reachable(host: str | None = None) -> bool:
    """Whether an Ollama server answers at ``host``."""
    return OllamaChat(host).reachable()
