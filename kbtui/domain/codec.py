"""Frozen dataclasses to plain JSON values and back, by their annotations. No other types, no versions guessed."""

import dataclasses
import math
import types
import typing
from collections.abc import Callable
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
    return _decoder(kind)(plain)


@cache
def _decoder(kind: Any) -> Callable[[Any], Any]:
    """Worked out once for an annotation: a long run has its hundred thousands of events decoded."""
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _optional(next(k for k in typing.get_args(kind) if k is not type(None)))
    if origin is tuple:
        return _tuple(typing.get_args(kind))
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _dataclass(kind)
    if kind is float or (isinstance(kind, type) and issubclass(kind, StrEnum)):
        return kind
    return _exact(kind)


def _optional(kind: Any) -> Callable[[Any], Any]:
    decode = _decoder(kind)
    return lambda plain: None if plain is None else decode(plain)


def _tuple(kinds: tuple[Any, ...]) -> Callable[[Any], Any]:
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        decode = _decoder(kinds[0])
        return lambda plain: tuple([decode(item) for item in plain])
    decoders = [_decoder(kind) for kind in kinds]
    return lambda plain: tuple([decode(item) for decode, item in zip(decoders, plain, strict=True)])


def _dataclass(kind: Any) -> Callable[[Any], Any]:
    decoders = {name: _decoder(hint) for name, hint in typing.get_type_hints(kind).items()}

    def decode(plain: Any) -> Any:
        return kind(**{name: decoders[name](item) for name, item in plain.items() if name in decoders})

    return decode


def _exact(kind: Any) -> Callable[[Any], Any]:
    def decode(plain: Any) -> Any:
        if not isinstance(plain, kind):
            raise TypeError(f"expected {kind.__name__}, got {plain!r}")
        return plain

    return decode


def envelope_to_plain(envelope: Envelope) -> dict[str, Any]:
    plain: dict[str, Any] = to_plain(envelope)
    plain["event"] = {"type": type(envelope.event).__name__, **plain["event"]}
    return plain


def envelope_from_plain(plain: dict[str, Any]) -> Envelope:
    """Raises KeyError on an event type this version does not know."""
    fields = dict(plain["event"])
    event: Event = from_plain(EVENT_TYPES[fields.pop("type")], fields)
    return Envelope(plain["seq"], plain["at"], float(plain["wall_s"]), float(plain["gpu_s"]), event)
