"""Effects: opens a text in the user's editor, in a temporary file that is removed afterwards."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from kbtui.errors import UsageError


def editor_command(environment: Mapping[str, str]) -> list[str]:
    """$VISUAL, else $EDITOR, else vi."""
    return shlex.split(environment.get("VISUAL") or environment.get("EDITOR") or "vi")


def edit(text: str, name: str) -> str | None:
    """The text after the editor was closed; None where nothing was changed. Raises UsageError without an editor."""
    command = editor_command(os.environ)
    with tempfile.TemporaryDirectory(prefix="kbtui-") as folder:
        path = Path(folder) / name
        path.write_text(text)
        try:
            done = subprocess.run([*command, str(path)], check=False)
        except OSError as error:
            raise UsageError(f"the editor {command[0]!r} cannot be started ({error.strerror})", "set $EDITOR") from None
        if done.returncode != 0:
            return None
        edited = path.read_text()
    return edited if edited != text and edited.strip() else None
