"""Every command says what it does, and the page of commands is what the command line says today."""

from pathlib import Path
from types import ModuleType

import pytest
import typer

from kbtui.cli import app
from tests.fakes.scripts import load_script

ROOT = Path(__file__).parents[2]
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    return load_script(ROOT / "docs/commands.py")


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_says_in_a_sentence_what_it_does(name: str) -> None:
    assert len((COMMANDS[name].help or "").split()) >= 2


def test_the_page_of_commands_is_up_to_date(generator: ModuleType) -> None:
    assert (ROOT / "docs/commands.md").read_text() == generator.page(), "run python docs/commands.py"
