"""A user's own keys by the ids of the key table: checked, so that none is lost to a slip or taken twice."""

import difflib
import unicodedata
from collections import Counter
from collections.abc import Mapping

from textual.keys import KEY_NAME_REPLACEMENTS, Keys, _character_to_key, format_key

from kbtui.errors import UsageError
from kbtui.tui.keys import BY_ID, KEYS, Key

Keymap = tuple[tuple[str, str], ...]

#: Keys that lists and every screen take before the table's: given away, they would do nothing of what was asked.
TAKEN = frozenset(("up", "down", "left", "right", "k", "j", "g", "G", "shift+g", "home", "end", "pageup", "pagedown",
                   "ctrl+c", "ctrl+q"))  # fmt: skip
_NAMED = frozenset(key.value.rpartition("+")[2] for key in Keys) | frozenset(KEY_NAME_REPLACEMENTS.values())
_MODIFIERS = ("ctrl", "shift", "alt", "super", "hyper", "meta")


def keymap_of(keys: Mapping[str, str]) -> Keymap:
    """The keymap for keys by id, as ``{"pause": "f2", "stop": "ctrl+x"}``; several keys for one have commas between.

    Raises UsageError where an id is unknown, a key is empty, or two ids would share one.
    """
    for name in keys:
        if name not in BY_ID:
            near = difflib.get_close_matches(name, BY_ID, n=1, cutoff=0.4)
            raise UsageError(
                f"no key is named {name!r}", f"did you mean {near[0]}?" if near else "see `kbtui config keys`"
            )
    chosen = {name: _normal(name, given) for name, given in keys.items()}
    _check_shared({**{key.id: key.key for key in KEYS}, **chosen})
    return tuple(chosen.items())


def shown_key(key: Key, keymap: Keymap) -> str:
    """A key as the key bar and the help write it: the user's own where it has been given another."""
    own = dict(keymap).get(key.id)
    return format_key(own.split(",")[0]) if own else key.shown


def _normal(name: str, given: str) -> str:
    """Characters by their names, as Textual wants them: ``?`` is ``question_mark``, and ``,`` alone ``comma``."""
    words = [given] if given.strip() == "," else given.split(",")
    stripped = [word.strip() for word in words]
    if not all(stripped):
        raise UsageError(f"keys: {name} is {given!r}", "name a key, as x, f2, ctrl+x or question_mark")
    for word in stripped:
        if not _is_key(word):
            raise UsageError(
                f"keys: {name} is {given!r}, and no key is called {word!r}", "as x, f2, ctrl+x or question_mark"
            )
        if word in TAKEN:
            raise UsageError(f"keys: {word} would be {name}, and it moves the cursor or ends programs", "take another")
    return ",".join(_character_to_key(word) if len(word) == 1 else word for word in stripped)


def _is_key(word: str) -> bool:
    """Whether a terminal could send it: a character, or a key's name after any modifiers."""
    *modifiers, base = word.split("+") if len(word) > 1 else [word]
    if any(m not in _MODIFIERS for m in modifiers):
        return False
    return len(base) == 1 or base in _NAMED or _names_a_character(base)


def _names_a_character(name: str) -> bool:
    """``question_mark`` does: keys are called by their Unicode names."""
    try:
        unicodedata.lookup(name.replace("_", " ").upper())
    except KeyError:
        return False
    return True


def _check_shared(keys: Mapping[str, str]) -> None:
    counted = Counter(key for given in keys.values() for key in given.split(","))
    for key, n in counted.items():
        if n > 1:
            first, second, *_ = [name for name, given in keys.items() if key in given.split(",")]
            raise UsageError(f"keys: {key} would be {first} and {second}", "give one of them another key")
