import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_to_files_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)#\s]+)", document.read_text()):
        if not re.match(r"[a-z]+:", target):
            assert (document.parent / target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_make_tasks_that_documents_name_exist(document):
    tasks = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`make ([a-z-]+)`", document.read_text()))
    assert named <= tasks


def test_the_top_level_is_what_the_readme_can_describe():
    kept = {p.name for p in ROOT.iterdir() if not p.name.startswith(".")} - {"build", "dist", "__pycache__"}
    files = {"pyproject.toml", "Makefile", "README.md", "CHANGELOG.md", "LICENSE"}
    folders = {"kbtui", "store", "hints", "sample_kernels", "tests", "benchmarks", "docs"}
    assert files | {"kbtui", "store", "hints", "sample_kernels", "tests"} <= kept
    assert kept - {"snapshot_report.html"} <= files | folders
