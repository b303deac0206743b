"""Hint files: the shipped ones are sound, and a mistake in one is told in a line with its file and key."""

from pathlib import Path

import pytest

from hints import choose_hints, load_hints
from hints.load import parse_hints, user_folder
from kbtui.domain.profile import Bottleneck, Diagnosis, Finding
from kbtui.domain.proposal import Phase, Space
from kbtui.errors import UsageError
from kbtui.generation.playbook import load_entries
from kbtui.generation.playbook.entry import families
from kbtui.generation.rewrites import REWRITES

HINTS = load_hints()
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
    assert {f for h in hints for f in h.families} <= set(families())


def test_there_are_forty_hints_and_each_says_why_at_what_cost_and_from_where():
    hints = load_hints()

    assert len(hints) >= 40
    assert [h.id for h in hints if not (h.why and h.cost and h.source and h.answers)] == []


@pytest.mark.parametrize("bottleneck", list(Bottleneck))
@pytest.mark.parametrize("family", [None, *families()])
def test_every_bottleneck_leads_to_hints_of_two_spaces_in_every_family(bottleneck, family):
    diagnosis = Diagnosis("slow", (Finding(bottleneck, 0.5, ()),), "s", 100.0, 50.0, "counters")
    chosen = choose_hints(HINTS, family, diagnosis, Phase.COARSE, (), 99)
    answering = [h for h in chosen if bottleneck in h.answers]

    assert len({h.space for h in answering}) >= 2
    assert chosen[: len(answering)] == tuple(answering)


def test_a_hint_for_a_later_chip_is_left_out():
    hints = load_hints()
    later = {h.id for h in hints if h.since_arch > 80}

    assert later
    assert not later & {h.id for h in choose_hints(hints, "linear_relu_div", None, Phase.COARSE, (), 99, arch=80)}
    assert later <= {h.id for h in choose_hints(hints, "linear_relu_div", None, Phase.COARSE, (), 99, arch=90)}


def test_a_users_own_hints_join_the_shipped_ones_and_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shipped = load_hints(own=tmp_path)
    (tmp_path / "mine.toml").write_text(GOOD.replace('id = "b"', f'id = "{shipped[0].id}"'))
    monkeypatch.setenv("KBTUI_HINTS", str(tmp_path))
    hints = {h.id: h for h in load_hints()}

    assert len(hints) == len(shipped) + 1
    assert hints["a"].advice == "Do this."
    assert hints[shipped[0].id].advice == "Do that."


def test_without_a_folder_of_their_own_a_user_has_the_shipped_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("KBTUI_HINTS", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert user_folder() is None
    (tmp_path / "kbtui" / "hints").mkdir(parents=True)
    assert user_folder() == tmp_path / "kbtui" / "hints"


def test_a_folder_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KBTUI_HINTS", str(tmp_path / "absent"))
    with pytest.raises(UsageError, match="KBTUI_HINTS names no folder"):
        load_hints()


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
        ('id = "b"', 'id = "b"\nwy = 1', "unknown key 'wy'"),
        ('id = "b"', 'id = "b"\nsince = "hopper"', "'since' is 'hopper'"),
        ('id = "b"', 'id = "b"\nwhy = ""', "'why'"),
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
