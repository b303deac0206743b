"""The language-model generator. Effects: talks to a server of language models."""

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from kbtui.domain.candidate import Attachment, Origin, Proposal, source_sha
from kbtui.domain.proposal import ProposalRequest, Receipt
from kbtui.errors import KbtuiError, UsageError
from kbtui.generation.chat import Chat, Reply, ServerFailedError
from kbtui.generation.fitting import Fitted, fit_prompt, tokens_of
from kbtui.generation.ollama_chat import OllamaChat
from kbtui.generation.openai_chat import OpenAiChat
from kbtui.generation.repair import Mended, Rejected, repair
from kbtui.generation.sameness import Repeats, normalised_sha
from kbtui.generation.signature import input_names
from kbtui.scheduler.fingerprint import structure_of

MAX_REPLIES = 2
_TRIES = 3
_BACK_OFF_S = 1.0
#: Who is asked once more, because a reply was of no use (most often it repeats), is to be more daring.
TEMPERATURE, HOTTER = 0.7, 1.0
#: How long a model may take to leave the GPU before a measurement begins all the same.
REST_S = 20.0
#: A server that read less than this part of a prompt's estimated tokens read it cut.
_READ_LEAST = 0.4


@dataclass(slots=True)
class _Costs:
    """What one answer cost so far, and the replies no candidate came of."""

    tokens: int = 0
    notes: list[str] = field(default_factory=list)
    attachments: list[Attachment] = field(default_factory=list)

    def unused(self, fitted: Fitted, reply: Reply, why: str) -> None:
        number = len(self.attachments) // 2 + 1
        self.notes.append(f"reply {number} of no use: {why}")
        self.attachments += [_text(f"prompt-{number}.md", fitted.prompt), _text(f"reply-{number}.txt", reply.text)]


class LlmGenerator:
    """Asks a model for better kernels. ``stop`` ends replies that are under way, at once.

    Attributes:
        rejected: replies no kernel could be made of, newest last; they go into the next prompts.
        shares_gpu: the server computes on the GPU that times candidates, so the model leaves it after each answer.
    """

    name = "llm"

    def __init__(self, model: str, chat: Chat | None = None, *, shares_gpu: bool = False) -> None:
        self.model = model
        self.chat: Chat = chat or OllamaChat()
        self.shares_gpu = shares_gpu
        self.rejected: deque[Rejected] = deque(maxlen=3)
        self._context: int | None = None
        self._asked_context = False
        self._said: set[str] = set()
        self._repeated: list[str] = []
        self._costs = _Costs()
        self._stopped = threading.Event()

    def stop(self) -> None:
        self._stopped.set()

    def receipt(self) -> Receipt:
        """What the last ``propose`` cost, whether it ended well or raised."""
        costs = self._costs
        return Receipt(costs.tokens, tuple(costs.attachments), tuple(costs.notes), exhausted=False)

    def propose(self, request: ProposalRequest) -> tuple[Proposal, ...]:
        """At most two proposals, from as many replies at once and one more where one was of no use.

        Raises UsageError (the model is not pulled, or too small for the prompt) and DeviceError (no server, or it
        goes on failing).
        """
        self._stopped.clear()
        self._costs = _Costs()
        wanted = min(request.limit, MAX_REPLIES)
        try:
            fresh = self._fresh(request, self._replies(request, range(wanted)))
            if wanted and len(fresh) < wanted and not self._stopped.is_set():
                fresh += self._fresh(request, self._replies(request, range(wanted, wanted + 1)))
        finally:
            self._leave_gpu()
        return tuple(fresh)

    def _replies(self, request: ProposalRequest, numbers: range) -> list[tuple[Fitted, Reply]]:
        """Replies to one prompt, asked all at once, in the order of their numbers."""
        fitted = self._fitted(request)
        with ThreadPoolExecutor(max_workers=max(len(numbers), 1), thread_name_prefix="llm") as threads:
            seeds = [request.seed * 1000 + number for number in numbers]
            temperature = HOTTER if numbers.start else TEMPERATURE
            futures = [threads.submit(self._ask, fitted, seed, temperature) for seed in seeds]
        self._costs.notes += fitted.left_out
        failure: KbtuiError | None = None
        got: list[tuple[Fitted, Reply]] = []
        for future in futures:
            try:
                got.append((fitted, future.result()))
            except KbtuiError as error:
                failure = error
        if failure is not None and not got:
            raise failure
        if failure is not None:
            self._costs.notes.append(failure.what)
        return got

    def _fresh(self, request: ProposalRequest, replies: list[tuple[Fitted, Reply]]) -> list[Proposal]:
        """Proposals of replies that say something new; the others are kept with the reason."""
        fresh = []
        for fitted, reply in replies:
            self._costs.tokens += reply.tokens + (tokens_of(fitted.prompt) if reply.prompt_tokens is None else 0)
            if reply.ended == "cancelled":
                continue
            inputs = input_names(request.problem, request.parent_source)
            made = repair(reply.text, inputs, request.parent_source)
            if isinstance(made, Rejected):
                made = _with_length(made, reply)
                self.rejected.append(made)
                self._costs.unused(fitted, reply, made.detail)
            elif why := self._repeats(made.source, request):
                self._costs.unused(fitted, reply, why)
            else:
                fresh.append(self._proposal(request, fitted, reply, made))
        return fresh

    def _repeats(self, source: str, request: ProposalRequest) -> str:
        """In which way a source says nothing new, empty where it does; what it says is known from now on."""
        said = normalised_sha(source)
        copied = said == _said_by_parent(request)
        again = copied or said in self._said or source_sha(source) in request.seen
        self._said.add(said)
        if not again:
            self._repeated.clear()
            return ""
        self._repeated.append(said)
        return "it is a copy of its parent" if copied else "it says what was said before"

    def _told_of_repeats(self, request: ProposalRequest) -> Repeats:
        copies = self._repeated.count(_said_by_parent(request))
        return Repeats(copies, len(self._repeated) - copies)

    def _fitted(self, request: ProposalRequest) -> Fitted:
        if not self._asked_context:
            self._context, self._asked_context = self.chat.context_length(self.model), True
        fitted = fit_prompt(request, self.rejected, self._context, self._told_of_repeats(request))
        if isinstance(fitted, int):
            raise UsageError(
                f"{self.model} holds {self._context} tokens, and the prompt with its answer needs about {fitted}",
                "name a model with a longer context",
            )
        return fitted

    def _ask(self, fitted: Fitted, seed: int, temperature: float) -> Reply:
        """One reply; failures that may pass are tried again, a bounded number of times."""
        options: dict[str, float | int] = {
            "seed": seed % (1 << 31),
            "temperature": temperature,
            "num_ctx": fitted.context_tokens,
            "num_predict": fitted.reply_tokens,
        }
        for attempt in range(_TRIES):
            try:
                return self.chat.reply(self.model, fitted.prompt, options, self._stopped)
            except ServerFailedError:
                if attempt == _TRIES - 1 or self._stopped.wait(_BACK_OFF_S * 2**attempt):
                    raise
        raise AssertionError("unreachable")

    def _leave_gpu(self) -> None:
        if self.shares_gpu and (why := self.chat.rest(self.model, REST_S)):
            self._costs.notes.append(why)

    def _proposal(self, request: ProposalRequest, fitted: Fitted, reply: Reply, made: Mended) -> Proposal:
        above = request.parent.structure if request.parent is not None else None
        structure = structure_of(made.source, request.parent_source, above, request.family or "kernel")
        hint = request.hints[0].id if request.hints else None
        tokens = f", {reply.reply_tokens} tokens" if reply.reply_tokens is not None else ""
        return Proposal(
            made.source,
            Origin("llm", self.model, hint),
            structure,
            f"{self.model}: {_first_words(hint)}",
            (*made.notes, *_doubts(fitted, reply), f"answered in {reply.wall_s:.1f} s{tokens}"),
            (_text("prompt.md", fitted.prompt), _text("reply.txt", reply.text)),
        )


def make_chat(ollama_host: str | None, llm_url: str | None) -> Chat:
    """The server at ``llm_url``, which speaks OpenAI's form, where there is one; else Ollama's at ``ollama_host``."""
    return OpenAiChat(llm_url) if llm_url else OllamaChat(ollama_host)


def _said_by_parent(request: ProposalRequest) -> str:
    return normalised_sha(request.parent_source) if request.parent_source else ""


def _doubts(fitted: Fitted, reply: Reply) -> tuple[str, ...]:
    """Whether the reply, or the prompt it answers, was cut."""
    said = []
    if reply.ended in ("length", "timeout"):
        said.append(f"the reply ended early ({reply.ended})")
    read, estimated = reply.prompt_tokens, tokens_of(fitted.prompt)
    if read is not None and (read >= fitted.context_tokens - 1 or read < _READ_LEAST * estimated):
        said.append(f"the server read {read} tokens of a prompt of about {estimated}: it may have cut it")
    return tuple(said)


def _with_length(made: Rejected, reply: Reply) -> Rejected:
    """A model that ran out of room is told so: the next answer can be shorter."""
    if reply.ended != "length" or "cut off" in made.detail:
        return made
    return Rejected(made.reason, f"{made.detail} (the reply was cut off at {reply.reply_tokens or 'its most'} tokens)")


def _text(name: str, text: str) -> Attachment:
    return Attachment(name, text.encode(errors="surrogatepass"))


def _first_words(hint: str | None) -> str:
    return hint.replace("_", " ") if hint else "free proposal"
