"""Keys of one's own: bound, and written wherever the viewer writes keys."""

import pytest

from kbtui.errors import UsageError
from kbtui.tui.glyphs import UNICODE
from kbtui.tui.help_text import help_lines
from kbtui.tui.keymap import TAKEN, keymap_of, shown_key
from kbtui.tui.keys import BY_ID, KEYS
from kbtui.tui.panes.lineage import LineagePane
from kbtui.tui.widgets.kanban import Kanban
from kbtui.tui.widgets.line_list import LineList


def test_a_character_may_be_written_as_it_is():
    assert keymap_of({"pause": "%", "pin": "f2, ctrl+x"}) == (("pause", "percent_sign"), ("pin", "f2,ctrl+x"))


def test_two_keys_may_change_places():
    assert dict(keymap_of({"pause": "x", "prune": "p"})) == {"pause": "x", "prune": "p"}


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"paus": "f2"}, "no key is named 'paus'; did you mean pause?"),
        ({"pause": "x"}, "x would be pause and prune"),
        ({"pause": ""}, "name a key"),
        ({"pause": "f2,"}, "name a key"),
    ],
)
def test_a_slip_is_named(keys, says):
    with pytest.raises(UsageError, match=says.replace("?", r"\?")):
        keymap_of(keys)


def test_the_help_writes_the_users_key_and_the_others_as_they_are():
    keymap = keymap_of({"pause": "f2"})
    text = "\n".join("".join(part[0] for part in line) for line in help_lines("rungs", 90, UNICODE, keymap))
    row = next(line for line in text.splitlines() if BY_ID["pause"].help[:30] in line)
    assert row.split()[0] == "f2"
    assert all(shown_key(key, keymap) == key.shown for key in KEYS if key.id != "pause")


@pytest.mark.parametrize("given", sorted(TAKEN))
def test_a_key_that_moves_the_cursor_is_refused_since_it_would_not_do_what_was_asked(given: str) -> None:
    with pytest.raises(UsageError, match="would be pause"):
        keymap_of({"pause": given})


def test_every_key_a_list_takes_is_refused_and_none_of_the_table_is() -> None:
    lists = {key for kind in (LineList, Kanban, LineagePane) for b in kind.BINDINGS for key in b.key.split(",")}  # type: ignore[union-attr]
    assert lists <= TAKEN
    assert not TAKEN & {word for key in KEYS for word in key.key.split(",")}


@pytest.mark.parametrize("given", ["nosuchkey", "foo+x", "ctrl+", "f99", "shift", "ctrl+nosuch", "x,nosuchkey"])
def test_a_word_that_is_no_key_is_refused(given: str) -> None:
    with pytest.raises(UsageError, match="no key is called"):
        keymap_of({"pause": given})


@pytest.mark.parametrize(
    "given", [",", "é", "f2", "ctrl+x", "alt+x", "ctrl+shift+f5", "comma", "exclamation_mark", "insert"]
)
def test_a_key_of_any_spelling_is_taken(given: str) -> None:
    assert dict(keymap_of({"pause": given}))
