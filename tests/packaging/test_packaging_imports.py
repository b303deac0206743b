"""Which libraries a part of kbtui brings with it, seen in a fresh interpreter rather than in the import graph."""

import importlib.util
import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "triton", "textual", "sqlmodel", "sqlalchemy", "git", "numpy")
#: Per part of kbtui: what it may bring.
MAY_BRING = {
    "kbtui.domain": set(),
    "kbtui.scheduler": set(),
    "hints": set(),
    "kbtui.cli": set(),
    "kbtui.commands": {"sqlmodel", "sqlalchemy", "git"},
    "kbtui.config": set(),
    "kbtui.doctor": {"sqlmodel", "sqlalchemy", "git"},
    "kbtui.problems": set(),
    "kbtui.generation": {"numpy"},
    "kbtui.engine": {"sqlmodel", "sqlalchemy", "git", "numpy"},
    "kbtui.tui": {"textual"},
    "store.reader": {"git"},
    "store": {"sqlmodel", "sqlalchemy", "git"},
}


def modules_of(name: str) -> list[str]:
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        return [name]
    below = pkgutil.walk_packages([str(p) for p in spec.submodule_search_locations], f"{name}.")
    return [name, *(module.name for module in below if not module.name.endswith("__main__"))]


def brought_by(modules: list[str]) -> set[str]:
    source = (
        "import importlib, json, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        f"print(json.dumps([n for n in {HEAVY!r} if n in sys.modules]))"
    )
    child = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert child.returncode == 0, child.stderr[-2000:]
    return set(json.loads(child.stdout.splitlines()[-1]))


@pytest.mark.parametrize("part", MAY_BRING)
def test_a_part_brings_only_the_libraries_that_are_its_own(part):
    assert brought_by(modules_of(part)) <= MAY_BRING[part]


def test_import_contracts_are_kept():
    lint_imports = Path(sys.executable).with_name("lint-imports")
    child = subprocess.run([str(lint_imports)], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert child.returncode == 0, child.stdout[-3000:]
