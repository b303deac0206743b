"""Makes a prompt fit a model's context, and says what had to go. Pure."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from kbtui.domain.proposal import ProposalRequest
from kbtui.generation.prompt import build_prompt
from kbtui.generation.repair import Rejected
from kbtui.generation.sameness import Repeats

#: Characters a token takes at least: Qwen's and Llama's tokenizers take 3.2 to 4 of Triton's source.
CHARS_PER_TOKEN = 3.0
REPLY_TOKENS = 4096
#: A whole kernel file takes this much.
LEAST_REPLY_TOKENS = 1024
LEAST_CONTEXT, MOST_CONTEXT = 4096, 32768


@dataclass(frozen=True, slots=True)
class Fitted:
    """A prompt with the context to ask for and the room left for the reply, in tokens; what was left out."""

    prompt: str
    context_tokens: int
    reply_tokens: int
    left_out: tuple[str, ...] = ()


def tokens_of(text: str) -> int:
    """How many tokens a text takes at most; an estimate that errs upwards."""
    return math.ceil(len(text) / CHARS_PER_TOKEN)


def fit_prompt(
    request: ProposalRequest, rejected: Iterable[Rejected], model_tokens: int | None, repeats: Repeats = Repeats()
) -> Fitted | int:
    """The fullest prompt that leaves room for a reply, or the tokens that even the barest one would take.

    ``model_tokens``: what the model can hold; None where nobody knows, which is taken for ``MOST_CONTEXT``. The task,
    the parent's source, that replies repeat and the answer's form are never left out.
    """
    limit = min(model_tokens or MOST_CONTEXT, MOST_CONTEXT)
    told = tuple(rejected)
    for left_out, shorter, said in _steps(request, told):
        prompt = build_prompt(shorter, said, repeats)
        needed = tokens_of(prompt)
        if needed + LEAST_REPLY_TOKENS <= limit:
            return _fitted(prompt, needed, limit, left_out)
    return needed + LEAST_REPLY_TOKENS


def _fitted(prompt: str, needed: int, limit: int, left_out: tuple[str, ...]) -> Fitted:
    context = min(limit, max(LEAST_CONTEXT, 1 << math.ceil(math.log2(needed + REPLY_TOKENS))))
    return Fitted(prompt, context, min(REPLY_TOKENS, context - needed), left_out)


def _steps(
    request: ProposalRequest, rejected: tuple[Rejected, ...]
) -> Iterable[tuple[tuple[str, ...], ProposalRequest, tuple[Rejected, ...]]]:
    """Ever barer requests, each with what it lacks: what says least about the next kernel goes first."""
    gone: tuple[str, ...] = ()
    yield gone, request, rejected
    for keep in (4, 0):
        if len(request.siblings) > keep:
            dropped = len(request.siblings) - keep
            request = replace(request, siblings=request.siblings[len(request.siblings) - keep :])
            gone = (*gone, f"left {dropped} earlier attempts out of the prompt")
            yield gone, request, rejected
    if rejected:
        rejected, gone = (), (*gone, "left earlier replies' faults out of the prompt")
        yield gone, request, rejected
    if len(request.hints) > 1:
        request = replace(request, hints=request.hints[:1])
        gone = (*gone, "left all hints but the first out of the prompt")
        yield gone, request, rejected
    if request.diagnosis is not None and request.diagnosis.findings:
        request = replace(request, diagnosis=replace(request.diagnosis, findings=()))
        yield (*gone, "left the diagnosis's numbers out of the prompt"), request, rejected
