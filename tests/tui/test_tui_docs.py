"""The page on the viewer is made from its tables, and its pictures exist."""

import re
from pathlib import Path

from tests.fakes.scripts import load_script

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_tables_make_of_it_and_its_pictures_are_kept() -> None:
    maker = load_script(ROOT / "docs/viewer.py")
    text = (ROOT / "docs/viewer.md").read_text()
    assert text == maker.page(), "run python docs/viewer.py"
    for path in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text):
        assert (ROOT / "docs" / path).read_text().startswith("<svg"), "run make screenshots"
