"""Hint files: the shipped ones are sound, and a mistake in one is told in a line with its file and key."""

from pathlib import Path

import pytest

from hints import load_hints
from hints.load import parse_hints
from kbtui.domain.proposal import Space
from kbtui.errors import UsageError
from kbtui.generation.playbook import load_entries
from kbtui.generation.playbook.entry import families
from kbtui.generation.rewrites import REWRITES

GOOD = """
space = "tiling"
[[hint]]
id = "a"
advice = "Do this."
answers = ["latency"]
operators = ["tile_size"]
[[hint]]
id = "b"
space = "launch"
advice = "Do that."
families = ["mat_vec"]
"""


def test_shipped_hints_cover_every_space_and_name_only_operators_that_exist():
    hints = load_hints()
    operators = {r.name for r in REWRITES} | {e.name for f in families() for e in load_entries(f)}

    assert {h.space for h in hints} == set(Space)
    assert {op for h in hints for op in h.operators} <= operators
    assert all(h.operators for h in hints)
    assert {f for h in hints for f in h.families} <= set(families())


def test_every_operator_names_hints_that_exist_and_that_name_it_back():
    hints = {h.id: h for h in load_hints()}
    entries = [e for f in families() for e in load_entries(f)]

    for operator in (*REWRITES, *entries):
        assert set(operator.hints) <= set(hints), operator.name
    assert {h for e in entries for h in e.hints if e.name not in hints[h].operators} == set()


def test_a_hint_without_a_space_takes_the_files():
    first, second = parse_hints(GOOD, "x.toml")

    assert (first.space, second.space) == (Space.TILING, Space.LAUNCH)
    assert (first.families, second.families) == ((), ("mat_vec",))


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('id = "a"', "", "'id'"),
        ('advice = "Do this."', 'advice = ""', "'advice'"),
        ('answers = ["latency"]', 'answers = ["slow"]', "'answers' has unknown value 'slow'"),
        ('operators = ["tile_size"]', 'operators = "tile_size"', "'operators'"),
        ('space = "tiling"', "", "'space'"),
        ('space = "launch"', 'space = "lunch"', "'lunch'"),
        ('id = "b"', 'id = "b"\nwhy = 1', "unknown key 'why'"),
        ("[[hint]]", "[[hints]]", "unknown key 'hints'"),
        ('id = "a"', 'id = "a', "not TOML"),
    ],
)
def test_a_mistake_is_one_line_with_file_and_key(old, new, named):
    with pytest.raises(UsageError) as told:
        parse_hints(GOOD.replace(old, new, 1), "mine.toml")

    assert "mine.toml" in str(told.value)
    assert named in str(told.value)
    assert "\n" not in str(told.value)


def test_two_hints_of_one_id_are_refused(tmp_path: Path):
    (tmp_path / "one.toml").write_text(GOOD)
    (tmp_path / "two.toml").write_text(GOOD)

    with pytest.raises(UsageError, match="two hints have the id 'a'"):
        load_hints(tmp_path)
