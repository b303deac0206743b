"""Pages of several calls profiled in one process are taken apart, and trimmed to what is read."""

from pathlib import Path
from types import ModuleType

from kbtui.evaluation.profiling.ncu_csv import parse_raw_page, profile_of
from tests.fakes.scripts import load_script

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "tests/data/ncu/softmax_first_h200.csv").read_text()


def _pages() -> ModuleType:
    return load_script(ROOT / "benchmarks/planted/pages.py")


def test_a_trimmed_page_is_read_as_the_whole_one() -> None:
    trimmed = _pages().trimmed(PAGE, 90)
    assert len(trimmed) < len(PAGE) / 3
    assert profile_of("s", parse_raw_page(trimmed)) == profile_of("s", parse_raw_page(PAGE))


def test_launches_go_to_the_calls_that_made_them_in_order() -> None:
    header, units, launch = PAGE.splitlines()[:3]
    named = [launch.replace("softmax_rows", name) for name in ("first", "second", "third")]
    text = "\n".join(("==PROF== Connected", header, units, *named)) + "\n"
    calls = [parse_raw_page(page) for page in _pages().split(text, [1, 2])]
    assert [[launch.kernel for launch in call] for call in calls] == [["first"], ["second", "third"]]
