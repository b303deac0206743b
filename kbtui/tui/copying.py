"""Effects: copies a text to a file, and by OSC 52 to the terminal's clipboard where it is small enough."""

import base64
from collections.abc import Callable
from pathlib import Path

from kbtui.tui.text import Told

#: Terminals and tmux drop an OSC 52 sequence above about 74,994 bytes of base64 (xterm's limit, the smallest).
OSC52_LIMIT_BYTES = 74_994


def copy(text: str, path: Path, to_clipboard: Callable[[str], None]) -> Told:
    """Write the text to ``path`` always, to the clipboard if it fits; says where it is now, and where it is not."""
    why_not = _write(text, path)
    fits = len(base64.b64encode(text.encode())) <= OSC52_LIMIT_BYTES
    if fits:
        to_clipboard(text)
    if why_not is not None:
        clipboard = "in the clipboard, if your terminal takes OSC 52" if fits else "too long for a clipboard"
        return Told(f"{clipboard}; no file: {why_not}", str(path))
    if not fits:
        return Told("written; too long for a terminal's clipboard", str(path))
    return Told("written; in the clipboard too, if your terminal takes OSC 52", str(path))


def _write(text: str, path: Path) -> str | None:
    """None, or why it could not be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        return error.strerror or type(error).__name__
    return None
