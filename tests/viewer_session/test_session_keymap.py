"""Keys of one's own: bound, and written wherever the viewer writes keys."""

import pytest

from kbtui.errors import UsageError
from kbtui.tui.glyphs import UNICODE
from kbtui.tui.help_text import help_lines
from kbtui.tui.keymap import keymap_of, shown_key
from kbtui.tui.keys import BY_ID, KEYS


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
