"""One chat with an Ollama server. Effects: HTTP requests, and a thread that reads the reply.

The reply is streamed and read in a thread, so that a stop is obeyed at once even while the server is silent.
"""

import queue
import threading
import time
from dataclasses import dataclass

import httpx
import ollama

from kbtui.errors import DeviceError, KbtuiError, UsageError

_POLL_S = 0.05
_END = None


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds: to connect; between two pieces of a reply (the first waits for the prompt); for a whole reply."""

    connect_s: float = 5.0
    silence_s: float = 180.0
    reply_s: float = 600.0


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered. ``ended`` is why it stopped: ``stop``, ``length``, ``timeout`` or ``cancelled``."""

    text: str
    ended: str
    wall_s: float
    reply_tokens: int | None = None


class OllamaChat:
    """Talks to one server. ``host`` as the client takes it (None: its default, http://127.0.0.1:11434)."""

    def __init__(self, host: str | None = None, timeouts: Timeouts | None = None) -> None:
        self.host = host
        self.timeouts = timeouts or Timeouts()

    def list_models(self) -> tuple[str, ...]:
        """Models the server holds. Raises DeviceError where no server answers."""
        try:
            models = self._client(self.timeouts.connect_s).list().models
        except (httpx.HTTPError, ollama.ResponseError, OSError, ValueError) as error:
            raise self._said(error, "") from None
        return tuple(sorted(m.model for m in models if m.model))

    def reachable(self) -> bool:
        try:
            self.list_models()
        except KbtuiError:
            return False
        return True

    def reply(self, model: str, prompt: str, options: dict[str, float | int], stop: threading.Event) -> Reply:
        """The model's answer to one prompt.

        Raises UsageError where the model is not pulled, DeviceError where the server is absent or fails. A reply that
        takes too long, or is stopped, comes back as far as it got.
        """
        pieces: queue.SimpleQueue[ollama.ChatResponse | Exception | None] = queue.SimpleQueue()
        abandoned = threading.Event()
        thread = threading.Thread(
            target=self._read, args=(model, prompt, options, pieces, abandoned), name="ollama-reply", daemon=True
        )
        thread.start()
        try:
            return self._collect(model, pieces, stop)
        finally:
            abandoned.set()

    def _collect(
        self, model: str, pieces: "queue.SimpleQueue[ollama.ChatResponse | Exception | None]", stop: threading.Event
    ) -> Reply:
        started, text, last = time.monotonic(), list[str](), None
        ended = "stop"
        while True:
            wall_s = time.monotonic() - started
            if stop.is_set() or wall_s > self.timeouts.reply_s:
                ended = "cancelled" if stop.is_set() else "timeout"
                break
            try:
                piece = pieces.get(timeout=_POLL_S)
            except queue.Empty:
                continue
            if piece is _END:
                break
            if isinstance(piece, Exception):
                raise self._said(piece, model)
            text.append(piece.message.content or "")
            last = piece
        wall_s = time.monotonic() - started
        if last is not None and last.done_reason and ended == "stop":
            ended = last.done_reason
        return Reply("".join(text), ended, wall_s, last.eval_count if last is not None else None)

    def _read(
        self,
        model: str,
        prompt: str,
        options: dict[str, float | int],
        pieces: "queue.SimpleQueue[ollama.ChatResponse | Exception | None]",
        abandoned: threading.Event,
    ) -> None:
        try:
            client = self._client(self.timeouts.silence_s)
            messages = [{"role": "user", "content": prompt}]
            done = False
            for piece in client.chat(model, messages, stream=True, options=options):
                if abandoned.is_set():
                    return
                pieces.put(piece)
                done = bool(piece.done)
            pieces.put(_END if done else EOFError("the reply was cut off"))
        except Exception as error:  # the thread's boundary: typed in _said
            pieces.put(error)

    def _client(self, silence_s: float) -> ollama.Client:
        return ollama.Client(host=self.host, timeout=httpx.Timeout(silence_s, connect=self.timeouts.connect_s))

    def _said(self, error: Exception, model: str) -> KbtuiError:
        """Any failure of the client as one line with what to do."""
        where = self.host or "http://127.0.0.1:11434"
        match error:
            case KbtuiError():
                return error
            case ollama.ResponseError(status_code=404):
                return UsageError(f"model {model!r} is not pulled on {where}", f"run `ollama pull {model}`")
            case ollama.ResponseError():
                said = str(error.error).strip().splitlines()[0][:200] if str(error.error).strip() else "no reason given"
                return ServerFailedError(f"Ollama at {where} failed ({error.status_code}: {said})", "see its log")
            case httpx.ConnectError() | httpx.ConnectTimeout() | ConnectionError():
                return DeviceError(
                    f"no Ollama server answers at {where}", "start it with `ollama serve`, or name its host"
                )
            case httpx.TimeoutException():
                return ServerFailedError(
                    f"Ollama at {where} was silent for {self.timeouts.silence_s:g} s", "try a smaller model"
                )
            case _:
                return ServerFailedError(f"the line to Ollama at {where} broke: {error}", "see the server's log")


class ServerFailedError(DeviceError):
    """A failure that may pass: worth another try."""
