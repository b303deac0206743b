"""Pages of which a script keeps a part: what is outside its marks stays; who writes them needs nothing of the tests."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.marked_page import between

ROOT = Path(__file__).parents[2]
TEXT = st.text(alphabet="ab |\n", max_size=20)


@given(TEXT, TEXT, TEXT, TEXT)
def test_only_what_stands_between_the_marks_is_replaced(before, old, new, after):
    page = f"{before}<!-- table -->\n{old}\n<!-- end of table -->{after}"
    assert between(page, "table", new) == f"{before}<!-- table -->\n{new}\n<!-- end of table -->{after}"


@pytest.mark.parametrize("page", ["nothing", "<!-- table -->", "<!-- end of table -->\n<!-- table -->"])
def test_a_page_without_its_marks_is_refused(page):
    with pytest.raises(ValueError, match="has no <!-- table -->"):
        between(page, "table", "new")


@pytest.mark.parametrize("script", ["adjudication", "adjudication_simulated", "adjudication_prior"])
def test_a_script_that_writes_into_a_page_imports_nothing_of_the_tests(script):
    """A GPU machine may have no tests, nor what they need."""
    loaded = (
        f"import sys, benchmarks.{script}; print([m for m in sys.modules if m.split('.')[0] in ('tests', 'pytest')])"
    )
    told = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, check=True, text=True)
    assert told.stdout == "[]\n"
