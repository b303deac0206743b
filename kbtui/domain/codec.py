"""Frozen dataclasses to plain JSON values and back, by their annotations. No other types, no versions guessed."""

import dataclasses
import math
import types
import typing
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

from kbtui.domain.event import EVENT_TYPES, Envelope, Event

T = TypeVar("T")


def to_plain(value: Any) -> Any:
    """A value as dicts, lists, strings and numbers. Infinities become the strings ``inf`` and ``-inf``."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [to_plain(item) for item in value]
    return value


def from_plain(kind: Any, plain: Any) -> Any:
    """The inverse of ``to_plain`` for an annotation; a field that is absent takes its default. Raises TypeError."""
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        options = [k for k in typing.get_args(kind) if k is not type(None)]
        return None if plain is None else from_plain(options[0], plain)
    if origin is tuple:
        args = typing.get_args(kind)
        if len(args) == 2 and args[1] is Ellipsis:
            return tuple(from_plain(args[0], item) for item in plain)
        return tuple(from_plain(k, item) for k, item in zip(args, plain, strict=True))
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = _hints(kind)
        return kind(**{name: from_plain(hints[name], item) for name, item in plain.items() if name in hints})
    if kind is float:
        return float(plain)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind(plain)
    if not isinstance(plain, kind):
        raise TypeError(f"expected {kind.__name__}, got {plain!r}")
    return plain


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def envelope_to_plain(envelope: Envelope) -> dict[str, Any]:
    plain: dict[str, Any] = to_plain(envelope)
    plain["event"] = {"type": type(envelope.event).__name__, **plain["event"]}
    return plain


def envelope_from_plain(plain: dict[str, Any]) -> Envelope:
    """Raises KeyError on an event type this version does not know."""
    fields = dict(plain["event"])
    event: Event = from_plain(EVENT_TYPES[fields.pop("type")], fields)
    return Envelope(plain["seq"], plain["at"], float(plain["wall_s"]), float(plain["gpu_s"]), event)
