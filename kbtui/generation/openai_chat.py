"""A chat with a server that speaks OpenAI's HTTP form: llama.cpp, vLLM, LM Studio and others. Effects: HTTP requests.

API: ``GET /models``, and ``POST /chat/completions`` answered as server-sent events.
"""

import json
import os
import threading
from collections.abc import Iterator
from typing import Any

import httpx

from kbtui.errors import DeviceError, KbtuiError, UsageError
from kbtui.generation.chat import Piece, Reply, ServerFailedError, Timeouts, collected

KEY_VARIABLE = "KBTUI_LLM_API_KEY"
_EVENT = "data:"


class OpenAiChat:
    """Talks to one server. ``url`` ends before ``/models``, e.g. http://127.0.0.1:8080/v1.

    A key that the server wants is read from the environment variable ``KBTUI_LLM_API_KEY``.
    """

    def __init__(self, url: str, timeouts: Timeouts | None = None) -> None:
        self.url = url.rstrip("/")
        self.timeouts = timeouts or Timeouts()

    def list_models(self) -> tuple[str, ...]:
        """Models the server names. Raises DeviceError where none answers."""
        try:
            with self._client(self.timeouts.connect_s) as client:
                answer = client.get(f"{self.url}/models").raise_for_status().json()
            return tuple(sorted(str(m["id"]) for m in answer["data"]))
        except (httpx.HTTPError, OSError, ValueError, KeyError, TypeError) as error:
            raise self._said(error, "") from None

    def context_length(self, model: str) -> int | None:
        """OpenAI's form has no place for it."""
        return None

    def reply(self, model: str, prompt: str, options: dict[str, float | int], stop: threading.Event) -> Reply:
        """See ``Chat``. ``num_ctx`` is the server's own affair here; the other options have their names."""
        asked: dict[str, Any] = {
            "model": model,
            "messages": [{"role": "user", "content": prompt}],
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": options.get("temperature"),
            "seed": options.get("seed"),
            "max_tokens": options.get("num_predict"),
        }
        return collected(lambda: self._pieces(asked), lambda error: self._said(error, model), stop, self.timeouts)

    def rest(self, model: str, within_s: float) -> str | None:
        """It cannot be asked to leave; the stream was closed, so it computes nothing any more."""
        return None

    def _pieces(self, asked: dict[str, Any]) -> Iterator[Piece]:
        with (
            self._client(self.timeouts.silence_s) as client,
            client.stream("POST", f"{self.url}/chat/completions", json=asked) as answer,
        ):
            if answer.is_error:
                answer.read()
                answer.raise_for_status()
            ended, usage = None, dict[str, Any]()
            for line in answer.iter_lines():
                event = line.removeprefix(_EVENT).strip()
                if not line.startswith(_EVENT) or not event:
                    continue
                if event == "[DONE]":
                    break
                part = json.loads(event)
                if "error" in part:
                    raise ServerFailedError(f"{self.url} failed: {_told(part)}", "see its log")
                usage = part.get("usage") or usage
                for choice in part.get("choices", ()):
                    delta = choice.get("delta") or {}
                    ended = choice.get("finish_reason") or ended
                    yield Piece(delta.get("content") or "", delta.get("reasoning_content") or "")
            if ended:
                yield Piece("", "", ended, usage.get("prompt_tokens"), usage.get("completion_tokens"))

    def _client(self, silence_s: float) -> httpx.Client:
        key = os.environ.get(KEY_VARIABLE)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx.Client(timeout=httpx.Timeout(silence_s, connect=self.timeouts.connect_s), headers=headers)

    def _said(self, error: Exception, model: str) -> KbtuiError:
        match error:
            case KbtuiError():
                return error
            case httpx.HTTPStatusError(response=httpx.Response(status_code=401 | 403)):
                return UsageError(f"{self.url} wants a key", f"put it into {KEY_VARIABLE}")
            case httpx.HTTPStatusError(response=httpx.Response(status_code=404)) if model:
                return UsageError(
                    f"{self.url} has no model {model!r}", "name one that it lists, and end the URL in /v1"
                )
            case httpx.HTTPStatusError():
                said = f"{error.response.status_code}: {_told(_plain(error.response))}"
                return ServerFailedError(f"{self.url} failed ({said})", "see its log")
            case httpx.ConnectError() | httpx.ConnectTimeout() | ConnectionError():
                return DeviceError(f"no server answers at {self.url}", "start it, or correct --llm-url")
            case httpx.TimeoutException():
                return ServerFailedError(
                    f"{self.url} was silent for {self.timeouts.silence_s:g} s", "try a smaller model"
                )
            case _:
                return ServerFailedError(f"the line to {self.url} broke: {error}", "see the server's log")


def _plain(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return response.text


def _told(answer: Any) -> str:
    """The server's own words, first line."""
    error = answer.get("error", answer) if isinstance(answer, dict) else answer
    message = error.get("message", error) if isinstance(error, dict) else error
    return next(iter(str(message).strip().splitlines()), "no reason given")[:200]
