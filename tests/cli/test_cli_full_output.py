"""Output that goes to a full disk: one line on stderr, and nothing that Python adds as it ends."""

import errno
import os
import subprocess

import pytest

from kbtui.cli_guard import guarded
from tests.fakes.commands import COMMAND, ROOT


@pytest.mark.parametrize("words", [("version",), ("config", "keys")])
def test_output_that_has_no_room_is_told_in_one_line(words):
    with open("/dev/full", "w") as full:
        said = subprocess.run(
            [*COMMAND, *words], stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT, stdin=subprocess.DEVNULL
        )
    assert said.stderr == "kbtui: no room left to write what it says; make room, then try again\n"
    assert said.returncode == 3


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_file_that_has_no_room_is_named(number, capsys):
    import typer

    app = typer.Typer()

    @app.command()
    def write() -> None:
        raise OSError(number, os.strerror(number), "/there/index.sqlite")

    assert guarded(app, []) == 3
    assert capsys.readouterr().err == "kbtui: no room left to write /there/index.sqlite; make room, then try again\n"
