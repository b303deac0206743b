"""Reads the hint files. Effects: reads ``hints/*.toml`` from the installed package and from the user's folder.

A file holds ``[[hint]]`` tables with the keys ``id``, ``advice``, ``why``, ``cost``, ``source``, ``families``,
``answers``, ``since``, ``operators`` and ``space``; a ``space`` at the top of the file holds for every hint that names
none. A user's folder (``user_folder``) holds files of the same form; a hint there replaces the shipped one of its id.
"""

import os
import re
import tomllib
from collections.abc import Iterable, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from kbtui.domain.profile import Bottleneck
from kbtui.domain.proposal import Hint, Space
from kbtui.errors import UsageError

_BOTTLENECKS = [b.value for b in Bottleneck]
_KEYS = ("id", "space", "advice", "why", "cost", "source", "families", "answers", "since", "operators")
_ARCH = re.compile(r"sm_(\d{2,3})")


FOLDER_VARIABLE = "KBTUI_HINTS"


def load_hints(directory: Traversable | None = None, own: Traversable | None = None) -> tuple[Hint, ...]:
    """All hints of a directory (default: the shipped ones and the user's), files by name, hints in file order.

    ``own`` (default: ``user_folder()``, unless a directory is named) adds to them; its ids win.
    Raises UsageError with the file and the key on anything that is not as the format says.
    """
    shipped = _read_folder(directory if directory is not None else resources.files("hints"))
    added = own if own is not None or directory is not None else user_folder()
    mine = _read_folder(added) if added is not None else ()
    replaced = {hint.id for hint in mine}
    return (*mine, *(hint for hint in shipped if hint.id not in replaced))


def user_folder() -> Path | None:
    """Where a user keeps hints of their own: ``$KBTUI_HINTS``, else ``~/.config/kbtui/hints``; None without one.

    Raises UsageError where the variable names no folder.
    """
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        if not Path(named).is_dir():
            raise UsageError(f"{FOLDER_VARIABLE} names no folder: {named}", "make it, or unset the variable")
        return Path(named)
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "kbtui" / "hints"
    return folder if folder.is_dir() else None


def _read_folder(root: Traversable) -> tuple[Hint, ...]:
    files = sorted((f for f in root.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    hints = tuple(hint for file in files for hint in parse_hints(_text_of(file), file.name))
    _refuse_twins(hints)
    return hints


def _text_of(file: Traversable) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {file}: {error}", "mend or remove it") from None


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
        why=_maybe_text(table, "why", where),
        cost=_maybe_text(table, "cost", where),
        source=_maybe_text(table, "source", where),
        since_arch=_arch(table, where),
    )


def _text(table: dict[str, Any], key: str, where: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value.strip():
        raise UsageError(f"{where}: {key!r} must be a text that is not empty", "write it in quotes")
    return " ".join(value.split())


def _maybe_text(table: dict[str, Any], key: str, where: str) -> str:
    return _text(table, key, where) if key in table else ""


def _arch(table: dict[str, Any], where: str) -> int:
    """``sm_90`` as 90; 0 where it is left out."""
    value = table.get("since")
    if value is None:
        return 0
    found = _ARCH.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise UsageError(f"{where}: 'since' is {value!r}", 'name an architecture, e.g. since = "sm_90"')
    return int(found.group(1))


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
