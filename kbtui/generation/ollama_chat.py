"""A chat with an Ollama server, through its Python client. Effects: HTTP requests."""

import os
import re
import threading
import time
from collections.abc import Iterator

import httpx
import ollama

from kbtui.errors import DeviceError, KbtuiError, UsageError
from kbtui.generation.chat import Piece, Reply, ServerFailedError, Timeouts, collected

_REST_POLL_S = 0.2
_NO_MEMORY = re.compile(r"more system memory|out of memory|unable to allocate|insufficient memory", re.IGNORECASE)


class OllamaChat:
    """Talks to one server. ``host`` as the client takes it (None: OLLAMA_HOST, else http://127.0.0.1:11434)."""

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

    def context_length(self, model: str) -> int | None:
        """Tokens the model was trained to hold, as ``/api/show`` tells it."""
        try:
            told = self._client(self.timeouts.connect_s).show(model).modelinfo or {}
        except (httpx.HTTPError, ollama.ResponseError, OSError, ValueError):
            return None  # a server that will not say may still answer
        found = [v for key, v in told.items() if key.endswith(".context_length") and isinstance(v, int) and v > 0]
        return min(found, default=None)

    def reply(self, model: str, prompt: str, options: dict[str, float | int], stop: threading.Event) -> Reply:
        """See ``Chat``."""
        return collected(
            lambda: self._pieces(model, prompt, options), lambda error: self._said(error, model), stop, self.timeouts
        )

    def rest(self, model: str, within_s: float) -> str | None:
        """Unload the model and wait until ``/api/ps`` no longer shows it on a GPU."""
        end = time.monotonic() + within_s
        client = self._client(self.timeouts.connect_s)
        try:
            if not _on_gpu(client):
                return None
            client.generate(model, "", keep_alive=0)
            while _on_gpu(client):
                if time.monotonic() > end:
                    return f"{model} still holds the GPU {within_s:g} s after it was asked to leave"
                time.sleep(_REST_POLL_S)
        except (httpx.HTTPError, ollama.ResponseError, OSError, ValueError) as error:
            return f"whether {model} left the GPU is unknown: {self._said(error, model).what}"
        return None

    def _pieces(self, model: str, prompt: str, options: dict[str, float | int]) -> Iterator[Piece]:
        messages = [{"role": "user", "content": prompt}]
        client = self._client(self.timeouts.silence_s)
        for part in client.chat(model, messages, stream=True, options=options):
            yield Piece(
                part.message.content or "",
                part.message.thinking or "",
                (part.done_reason or "stop") if part.done else None,
                part.prompt_eval_count,
                part.eval_count,
            )

    def _client(self, silence_s: float) -> ollama.Client:
        return ollama.Client(host=self.host, timeout=httpx.Timeout(silence_s, connect=self.timeouts.connect_s))

    def _said(self, error: Exception, model: str) -> KbtuiError:
        """Any failure of the client as one line with what to do."""
        where = self.host or os.environ.get("OLLAMA_HOST") or "http://127.0.0.1:11434"
        match error:
            case KbtuiError():
                return error
            case ollama.ResponseError(status_code=404):
                return UsageError(f"model {model!r} is not pulled on {where}", f"run `ollama pull {model}`")
            case ollama.ResponseError() if _NO_MEMORY.search(str(error.error)):
                return DeviceError(
                    f"Ollama at {where} has no memory for {model}: {_first_line(error.error)}", "name a smaller model"
                )
            case ollama.ResponseError():
                said = f"{error.status_code}: {_first_line(error.error) or 'no reason given'}"
                return ServerFailedError(f"Ollama at {where} failed ({said})", "see its log")
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


def _on_gpu(client: ollama.Client) -> bool:
    return any((loaded.size_vram or 0) > 0 for loaded in client.ps().models)


def _first_line(text: str) -> str:
    return next(iter(str(text).strip().splitlines()), "")[:200]
