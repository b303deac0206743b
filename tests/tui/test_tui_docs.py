"""The page on the viewer is made from its tables, and its pictures exist."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_tables_make_of_it_and_its_pictures_are_kept() -> None:
    spec = importlib.util.spec_from_file_location("viewer_page", ROOT / "docs/viewer.py")
    assert spec is not None
    assert spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    text = (ROOT / "docs/viewer.md").read_text()
    assert text == maker.page(), "run python docs/viewer.py"
    for path in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text):
        assert (ROOT / "docs" / path).read_text().startswith("<svg"), "run make screenshots"
