"""A server that speaks enough of Ollama's HTTP interface: /api/chat (streamed), /api/tags, /api/version, and faults."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Fault(StrEnum):
    NONE = "none"
    ERROR_500 = "500"
    CUT = "cut"
    SILENT = "silent"
    ENDLESS = "endless"


@dataclass
class FakeOllama:
    """What the server holds and does. ``faults`` are used up one a chat, then it answers well.

    ``requests`` are the chats it was asked; ``release`` lets go of silent chats.
    """

    models: tuple[str, ...] = ("coder:7b",)
    replies: list[str] = field(default_factory=lambda: ["no code"])
    faults: list[Fault] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    release: threading.Event = field(default_factory=threading.Event)
    streaming: threading.Event = field(default_factory=threading.Event)
    host: str = ""

    def next_reply(self) -> str:
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


@contextmanager
def serve(fake: FakeOllama) -> Iterator[FakeOllama]:
    """The server on a free loopback port, its address in ``fake.host``."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(fake))
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
            if self.path == "/api/tags":
                self._json(200, {"models": [{"model": name, "name": name} for name in fake.models]})
            elif self.path == "/api/version":
                self._json(200, {"version": "0.0.0-fake"})
            else:
                self._json(404, {"error": "not found"})

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            fake.requests.append(asked)
            fault = fake.faults.pop(0) if fake.faults else Fault.NONE
            if asked["model"] not in fake.models:
                self._json(404, {"error": f"model '{asked['model']}' not found"})
            elif fault is Fault.ERROR_500:
                self._json(500, {"error": "out of memory"})
            else:
                self._stream(asked["model"], fault)

        def _json(self, status: int, value: object) -> None:
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _stream(self, model: str, fault: Fault) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/x-ndjson")
            self.end_headers()
            if fault is Fault.SILENT:
                fake.streaming.set()
                fake.release.wait(30)
                return
            text = fake.next_reply()
            pieces = [text[i : i + 40] for i in range(0, len(text), 40)] or [""]
            try:
                for number, piece in enumerate(pieces):
                    self._piece(model, piece, done=False)
                    fake.streaming.set()
                    if fault is Fault.CUT and number == len(pieces) // 2:
                        return
                while fault is Fault.ENDLESS and not fake.release.wait(0.01):
                    self._piece(model, "again ", done=False)
                self._piece(model, "", done=True)
            except (BrokenPipeError, ConnectionResetError):
                pass

        def _piece(self, model: str, text: str, done: bool) -> None:
            value: dict[str, Any] = {"model": model, "message": {"role": "assistant", "content": text}, "done": done}
            if done:
                value |= {"done_reason": "stop", "prompt_eval_count": 11, "eval_count": 7}
            self.wfile.write(json.dumps(value).encode() + b"\n")
            self.wfile.flush()

    return Handler
