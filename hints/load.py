"""Reads the hint files. Effects: reads ``hints/*.toml`` from the installed package, or from a directory.

A file holds ``[[hint]]`` tables with the keys ``id``, ``advice``, ``families``, ``answers``, ``operators`` and
``space``; a ``space`` at the top of the file holds for every hint that names none.
"""

import tomllib
from collections.abc import Iterable, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from kbtui.domain.profile import Bottleneck
from kbtui.domain.proposal import Hint, Space
from kbtui.errors import UsageError

_BOTTLENECKS = [b.value for b in Bottleneck]
_KEYS = ("id", "space", "advice", "families", "answers", "operators")


def load_hints(directory: Traversable | None = None) -> tuple[Hint, ...]:
    """All hints of a directory (default: the shipped ones), files by name, hints in file order.

    Raises UsageError with the file and the key on anything that is not as the format says.
    """
    root = directory if directory is not None else resources.files("hints")
    files = sorted((f for f in root.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    hints = tuple(hint for file in files for hint in parse_hints(file.read_text(encoding="utf-8"), file.name))
    _refuse_twins(hints)
    return hints


def parse_hints(text: str, file: str) -> tuple[Hint, ...]:
    """The hints of one file's text; ``file`` is only named in errors. Raises UsageError."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}: not TOML: {error}", "mend the file") from None
    unknown = set(document) - {"space", "hint"}
    if unknown:
        raise UsageError(f"{file}: unknown key {min(unknown)!r}", "a hint file holds `space` and [[hint]] tables")
    tables = document.get("hint", [])
    if not isinstance(tables, list):
        raise UsageError(f"{file}: `hint` is one table", "write [[hint]] with double brackets")
    return tuple(_hint(table, document.get("space"), f"{file}: hint {n}") for n, table in enumerate(tables, 1))


def _hint(table: dict[str, Any], default_space: object, where: str) -> Hint:
    where = f"{where} ({table['id']})" if isinstance(table.get("id"), str) else where
    unknown = set(table) - set(_KEYS)
    if unknown:
        raise UsageError(f"{where}: unknown key {min(unknown)!r}", f"keys are {', '.join(_KEYS)}")
    return Hint(
        id=_text(table, "id", where),
        space=Space(_one_of(table.get("space", default_space), [s.value for s in Space], "space", where)),
        advice=_text(table, "advice", where),
        families=_names(table, "families", where),
        answers=tuple(_one_of(a, _BOTTLENECKS, "answers", where) for a in _names(table, "answers", where)),
        operators=_names(table, "operators", where),
    )


def _text(table: dict[str, Any], key: str, where: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"{where}: {key!r} must be a text that is not empty", "write it in quotes")
    return " ".join(value.split())


def _names(table: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UsageError(f"{where}: {key!r} must be a list of names", f'write {key} = ["name"]')
    return tuple(value)


def _one_of(value: object, allowed: Sequence[str], key: str, where: str) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise UsageError(f"{where}: {key!r} has unknown value {value!r}", f"one of {', '.join(allowed)}")
    return value


def _refuse_twins(hints: Iterable[Hint]) -> None:
    seen: set[str] = set()
    for hint in hints:
        if hint.id in seen:
            raise UsageError(f"two hints have the id {hint.id!r}", "rename one of them")
        seen.add(hint.id)
