"""No key of the viewer is one that tmux, screen or the terminal itself takes, in the table or beside it."""

import json

import pytest
from textual.binding import Binding

from kbtui.tui.app import Viewer
from kbtui.tui.keys import KEYS
from kbtui.tui.screens.dashboard import Dashboard
from kbtui.tui.screens.detail import Detail
from kbtui.tui.screens.runs import Runs
from kbtui.tui.widgets.line_list import LineList
from tests.fakes.commands import kbtui

#: tmux's, screen's and byobu's prefixes; flow control; job control; newlines; the end of input.
TAKEN = {f"ctrl+{letter}" for letter in "abjosqzmidh[\\"}


def keys_of(binding: Binding) -> set[str]:
    return {key.strip() for key in binding.key.split(",")}


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.id)
def test_no_key_of_the_table_is_taken(key):
    assert not {k.strip() for k in key.key.split(",")} & TAKEN


@pytest.mark.parametrize("kind", [Viewer, Dashboard, Detail, Runs, LineList])
def test_no_binding_beside_the_table_is_taken(kind):
    bound = {key for binding in kind._merged_bindings.key_to_bindings for key in binding.split(",")}
    assert not bound & TAKEN


def test_the_printed_table_is_the_one_that_is_bound(tmp_path):
    rows = json.loads(kbtui("config", "keys", "--json", cwd=tmp_path).stdout)
    assert [(row["id"], row["key"]) for row in rows] == [(key.id, key.key) for key in KEYS]
