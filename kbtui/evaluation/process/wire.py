"""Effects: sends and receives frames on a connected stream socket.

A frame is a header (JSON length, payload length plus one or 0 for none, both big-endian), then JSON, then the bytes.
Lengths come from a process that may lie, so memory grows with what arrives, never with what was announced.
"""

import json
import select
import socket
import struct
import time
from dataclasses import dataclass
from typing import Any

_HEADER = struct.Struct("!IQ")
_CHUNK = 1 << 20
MAX_JSON_BYTES = 16 << 20
MAX_PAYLOAD_BYTES = 4 << 30


class Closed(Exception):  # noqa: N818
    """The other side closed the connection."""


class Overdue(Exception):  # noqa: N818
    """The deadline passed before a whole frame arrived."""


class BadFrame(Exception):  # noqa: N818
    """The other side does not keep to the protocol."""


@dataclass(frozen=True, slots=True)
class Frame:
    message: dict[str, Any]
    payload: bytes | None


def send(sock: socket.socket, message: dict[str, Any], payload: bytes | None = None) -> None:
    """Raises Closed. Blocks while the other side reads nothing."""
    text = json.dumps(message).encode()
    try:
        sock.sendall(_HEADER.pack(len(text), 0 if payload is None else len(payload) + 1) + text)
        if payload:
            sock.sendall(payload)
    except (BrokenPipeError, ConnectionError) as error:
        raise Closed from error


def receive(sock: socket.socket, deadline: float | None = None, most_bytes: int = MAX_PAYLOAD_BYTES) -> Frame:
    """One frame, with at most ``most_bytes`` attached. ``deadline`` is on time.monotonic.

    Raises Closed, Overdue, BadFrame.
    """
    n_json, n_payload = _HEADER.unpack(_exactly(sock, _HEADER.size, deadline))
    if n_json > MAX_JSON_BYTES or n_payload > most_bytes:
        raise BadFrame(f"a frame of {n_json} + {n_payload} bytes")
    text = _exactly(sock, n_json, deadline)
    payload = bytes(_exactly(sock, n_payload - 1, deadline)) if n_payload else None
    try:
        message = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadFrame(f"not JSON: {error}") from None
    if not isinstance(message, dict):
        raise BadFrame(f"a frame holds {type(message).__name__}, not an object")
    return Frame(message, payload)


def _exactly(sock: socket.socket, n_bytes: int, deadline: float | None) -> bytearray:
    received = bytearray()
    while len(received) < n_bytes:
        _wait_readable(sock, deadline)
        try:
            chunk = sock.recv(min(n_bytes - len(received), _CHUNK))
        except ConnectionError as error:
            raise Closed from error
        if not chunk:
            raise Closed
        received += chunk
    return received


def readable(sock: socket.socket, deadline: float) -> bool:
    """Wait until there is something to read (or the end); False at the deadline."""
    poller = select.poll()
    poller.register(sock, select.POLLIN)
    return bool(poller.poll(max(0.0, deadline - time.monotonic()) * 1e3))


def _wait_readable(sock: socket.socket, deadline: float | None) -> None:
    if deadline is not None and not readable(sock, deadline):
        raise Overdue
