"""Effects: opens a text in the user's editor, in a temporary file that is removed afterwards."""

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from kbtui.errors import UsageError


def editor_command(environment: Mapping[str, str]) -> list[str]:
    """$VISUAL, else $EDITOR, else vi. Raises UsageError where it cannot be read as a command."""
    said = environment.get("VISUAL") or environment.get("EDITOR") or "vi"
    try:
        return shlex.split(said) or ["vi"]
    except ValueError as error:
        raise UsageError(f"$EDITOR is {said!r}, which is no command ({error})", "set it to one") from None


def edit(text: str, name: str) -> str | None:
    """The text after the editor was closed; None where nothing was changed. Raises UsageError without an editor."""
    command = editor_command(os.environ)
    try:
        return _edit(command, text, name)
    except UnicodeDecodeError:
        raise UsageError("what the editor wrote is not UTF-8", "nothing was submitted; save it as UTF-8") from None
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise UsageError(f"the source cannot be given to an editor ({why})", "set $TMPDIR, or `kbtui submit`") from None


def _edit(command: list[str], text: str, name: str) -> str | None:
    with tempfile.TemporaryDirectory(prefix="kbtui-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / name
        path.write_text(text, encoding="utf-8")
        try:
            done = subprocess.run([*command, str(path)], check=False)
        except OSError as error:
            raise UsageError(f"the editor {command[0]!r} cannot be started ({error.strerror})", "set $EDITOR") from None
        if done.returncode != 0:
            return None
        edited = path.read_text(encoding="utf-8")
    return edited if edited != text and edited.strip() else None
