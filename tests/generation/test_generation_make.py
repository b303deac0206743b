"""Generators by name; a wrong name is told with the nearest one."""

import subprocess
import sys

import pytest

from kbtui.errors import UsageError
from kbtui.generation import make_generators


def test_generators_come_in_the_order_named():
    made = make_generators(("rewrites", "playbook", "llm"), "coder:7b")

    assert list(made) == ["rewrites", "playbook", "llm"]
    assert [g.name for g in made.values()] == list(made)


@pytest.mark.parametrize(
    ("name", "advice"), [("playbok", "did you mean playbook?"), ("lmm", "did you mean llm?"), ("xyz", "there are")]
)
def test_an_unknown_name_is_told_with_the_nearest(name, advice):
    with pytest.raises(UsageError) as told:
        make_generators((name,))

    assert f"unknown generator '{name}'; {advice}" in str(told.value)


def test_the_language_model_needs_a_name():
    with pytest.raises(UsageError, match="needs a model; name one with --model"):
        make_generators(("llm",))


def test_the_plane_imports_neither_torch_nor_triton():
    code = (
        "import sys; from kbtui.generation import make_generators; from hints import load_hints; load_hints();"
        "make_generators(('playbook', 'rewrites', 'llm'), 'm');"
        "sys.exit(bool({'torch', 'triton', 'textual', 'sqlmodel'} & set(sys.modules)))"
    )

    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
