"""A server that speaks enough of Ollama's HTTP interface, and of OpenAI's, and fails on demand.

Ollama: /api/chat (streamed), /api/generate (to unload), /api/tags, /api/show, /api/ps, /api/version.
OpenAI's form: /v1/models, /v1/chat/completions (server-sent events).
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Fault(StrEnum):
    NONE = "none"
    ERROR_500 = "500"
    NO_MEMORY = "no memory"
    CUT = "cut"
    SILENT = "silent"
    ENDLESS = "endless"


@dataclass
class FakeOllama:
    """What the server holds and does. ``faults`` are used up one a chat, then it answers well.

    ``requests`` are the chats it was asked; ``release`` lets go of silent chats. ``context``: the model's length, and
    ``read``: tokens it says it read of a prompt. ``vram``: bytes of the GPU the model holds until it is unloaded, and
    ``stays``: it never leaves. ``meet``: replies end only when so many are open at once.
    """

    models: tuple[str, ...] = ("coder:7b",)
    replies: list[str] = field(default_factory=lambda: ["no code"])
    faults: list[Fault] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)
    streaming: threading.Event = field(default_factory=threading.Event)
    host: str = ""
    context: int | None = None
    read: Callable[[str], int] = lambda prompt: len(prompt) // 4
    ended: str = "stop"
    thought: str = ""
    vram: int = 0
    stays: bool = False
    key: str | None = None
    meet: threading.Barrier | None = None
    hung_up: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"{self.host}/v1"

    def next_reply(self) -> str:
        with self._lock:
            return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]

    def next_fault(self) -> Fault:
        with self._lock:
            return self.faults.pop(0) if self.faults else Fault.NONE


@contextmanager
def serve(fake: FakeOllama, port: int = 0) -> Iterator[FakeOllama]:
    """The server on a loopback port (0: a free one), its address in ``fake.host``."""
    server = ThreadingHTTPServer(("127.0.0.1", port), _handler(fake))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    fake.host = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield fake
    finally:
        fake.release.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(fake: FakeOllama) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_args: object) -> None:
            pass

        def do_GET(self) -> None:
            match self.path:
                case "/api/tags":
                    self._json(200, {"models": [{"model": name, "name": name} for name in fake.models]})
                case "/api/version":
                    self._json(200, {"version": "0.0.0-fake"})
                case "/api/ps":
                    loaded = [{"model": fake.models[0], "name": fake.models[0], "size_vram": fake.vram}]
                    self._json(200, {"models": loaded if fake.vram else []})
                case "/v1/models":
                    self._json(200, {"object": "list", "data": [{"id": name} for name in fake.models]})
                case _:
                    self._json(404, {"error": "not found"})

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            match self.path:
                case "/api/show":
                    told = {} if fake.context is None else {"fake.context_length": fake.context}
                    self._json(200, {"model_info": told})
                case "/api/generate":
                    fake.vram = fake.vram if fake.stays else 0
                    self._json(200, {"model": asked["model"], "response": "", "done": True, "done_reason": "unload"})
                case "/api/chat" | "/v1/chat/completions":
                    self._chat(asked)

        def _chat(self, asked: dict[str, Any]) -> None:
            fake.requests.append(asked)
            fault = fake.next_fault()
            openai = self.path.startswith("/v1")
            if fake.key and self.headers.get("Authorization") != f"Bearer {fake.key}":
                self._json(401, {"error": {"message": "no key"}})
            elif asked["model"] not in fake.models:
                told = f"model '{asked['model']}' not found"
                self._json(404, {"error": {"message": told} if openai else told})
            elif fault is Fault.ERROR_500:
                self._json(500, {"error": {"message": "it broke"} if openai else "it broke"})
            elif fault is Fault.NO_MEMORY:
                told = "model requires more system memory (9.6 GiB) than is available (7.1 GiB)"
                self._json(500, {"error": {"message": told} if openai else told})
            else:
                self._stream(asked, fault, _openai_line if openai else _ollama_line)

        def _json(self, status: int, value: object) -> None:
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _stream(self, asked: dict[str, Any], fault: Fault, line: "Line") -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/x-ndjson")
            self.end_headers()
            if fault is Fault.SILENT:
                fake.streaming.set()
                fake.release.wait(30)
                return
            text = fake.next_reply()
            pieces = [text[i : i + 40] for i in range(0, len(text), 40)] or [""]
            prompt = asked["messages"][0]["content"]
            try:
                if fake.thought:
                    self._write(line(asked["model"], "", fake.thought, None, 0))
                for number, piece in enumerate(pieces):
                    self._write(line(asked["model"], piece, "", None, 0))
                    fake.streaming.set()
                    if fault is Fault.CUT and number == len(pieces) // 2:
                        return
                while fault is Fault.ENDLESS and not fake.release.wait(0.01):
                    self._write(line(asked["model"], "again ", "", None, 0))
                if fake.meet is not None:
                    fake.meet.wait(5)
                self._write(line(asked["model"], "", "", fake.ended, fake.read(prompt)))
            except (BrokenPipeError, ConnectionResetError):
                fake.hung_up.set()

        def _write(self, line: bytes) -> None:
            self.wfile.write(line)
            self.wfile.flush()

    return Handler


#: One part of a stream: model, text, thought, why it ended, prompt tokens.
Line = Callable[[str, str, str, str | None, int], bytes]


def _ollama_line(model: str, text: str, thought: str, ended: str | None, read: int) -> bytes:
    message = {"role": "assistant", "content": text, **({"thinking": thought} if thought else {})}
    value: dict[str, Any] = {"model": model, "message": message, "done": ended is not None}
    if ended is not None:
        value |= {"done_reason": ended, "prompt_eval_count": read, "eval_count": 7}
    return json.dumps(value).encode() + b"\n"


def _openai_line(model: str, text: str, thought: str, ended: str | None, read: int) -> bytes:
    delta = {"content": text, **({"reasoning_content": thought} if thought else {})}
    first = {"model": model, "choices": [{"index": 0, "delta": delta, "finish_reason": ended}]}
    lines = [first]
    if ended is not None:
        lines.append({"choices": [], "usage": {"prompt_tokens": read, "completion_tokens": 7}})
    said = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in lines)
    return said + (b"data: [DONE]\n\n" if ended is not None else b"")
