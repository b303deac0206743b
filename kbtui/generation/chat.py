"""A chat with a server of language models, whatever protocol it speaks. Effects: a thread that reads the reply.

The reply is streamed and read in a thread, so that a stop is obeyed at once even while the server is silent.
"""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from kbtui.errors import DeviceError, KbtuiError

_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds: to connect; between two pieces of a reply (the first waits for the prompt); for a whole reply."""

    connect_s: float = 5.0
    silence_s: float = 180.0
    reply_s: float = 600.0


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a reply as it arrives. The last one says why it ended and, where the server counts, the tokens."""

    text: str = ""
    thought: str = ""
    ended: str | None = None
    prompt_tokens: int | None = None
    reply_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered. ``ended`` is why it stopped: ``stop``, ``length``, ``timeout`` or ``cancelled``.

    What it thought aloud beside its answer stands before it between ``<think>`` tags.
    """

    text: str
    ended: str
    wall_s: float
    prompt_tokens: int | None = None
    reply_tokens: int | None = None

    @property
    def tokens(self) -> int:
        """Tokens read and written; what the server did not count is taken as a third of the characters."""
        return (self.prompt_tokens or 0) + (self.reply_tokens if self.reply_tokens is not None else len(self.text) // 3)


class ServerFailedError(DeviceError):
    """A failure that may pass: worth another try."""


class Chat(Protocol):
    """One server. Every method raises UsageError (the model is not there) or DeviceError (no server, or it fails)."""

    def list_models(self) -> tuple[str, ...]: ...

    def context_length(self, model: str) -> int | None:
        """Tokens the model can hold at most; None where the server does not say."""
        ...

    def reply(self, model: str, prompt: str, options: dict[str, float | int], stop: threading.Event) -> Reply:
        """The model's answer to one prompt. One that takes too long, or is stopped, comes back as far as it got."""
        ...

    def rest(self, model: str, within_s: float) -> str | None:
        """Make the model leave the GPU. Returns why it may still be there, None once it is gone. Never raises."""
        ...


def collected(
    pieces_of: Callable[[], Iterator[Piece]],
    said: Callable[[Exception], KbtuiError],
    stop: threading.Event,
    timeouts: Timeouts,
) -> Reply:
    """The whole of a reply whose pieces ``pieces_of`` yields; ``said`` words a failure."""
    inbox: queue.SimpleQueue[Piece | Exception | None] = queue.SimpleQueue()
    abandoned = threading.Event()
    threading.Thread(target=_read, args=(pieces_of, inbox, abandoned), name="llm-reply", daemon=True).start()
    try:
        return _gathered(inbox, said, stop, timeouts)
    finally:
        abandoned.set()


def _gathered(
    inbox: "queue.SimpleQueue[Piece | Exception | None]",
    said: Callable[[Exception], KbtuiError],
    stop: threading.Event,
    timeouts: Timeouts,
) -> Reply:
    started, text, thought, last = time.monotonic(), list[str](), list[str](), Piece()
    ended = None
    while ended is None:
        wall_s = time.monotonic() - started
        if stop.is_set() or wall_s > timeouts.reply_s:
            ended = "cancelled" if stop.is_set() else "timeout"
            break
        try:
            piece = inbox.get(timeout=_POLL_S)
        except queue.Empty:
            continue
        match piece:
            case None:
                ended = last.ended or "stop"
            case Exception():
                raise said(piece)
            case Piece():
                text.append(piece.text)
                thought.append(piece.thought)
                last = piece if piece.ended else last
    mused = "".join(thought)
    whole = f"<think>{mused}</think>\n{''.join(text)}" if mused else "".join(text)
    return Reply(whole, ended, time.monotonic() - started, last.prompt_tokens, last.reply_tokens)


def _read(
    pieces_of: Callable[[], Iterator[Piece]],
    inbox: "queue.SimpleQueue[Piece | Exception | None]",
    abandoned: threading.Event,
) -> None:
    try:
        done = False
        pieces = pieces_of()
        try:
            for piece in pieces:
                if abandoned.is_set():
                    return
                inbox.put(piece)
                done = done or piece.ended is not None
        finally:
            close = getattr(pieces, "close", None)  # closes the stream, so that the server stops computing
            if close is not None:
                close()
        inbox.put(None if done else EOFError("the reply was cut off"))
    except Exception as error:  # the thread's boundary: worded by the reader
        inbox.put(error)
