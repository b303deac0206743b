"""Effects: copies a text to a file, and by OSC 52 to the terminal's clipboard where it is small enough."""

import base64
from collections.abc import Callable
from pathlib import Path

#: Terminals and tmux drop an OSC 52 sequence above about 74,994 bytes of base64 (xterm's limit, the smallest).
OSC52_LIMIT_BYTES = 74_994


def copy(text: str, path: Path, to_clipboard: Callable[[str], None]) -> str:
    """Write the text to ``path`` always, to the clipboard if it fits; says which in one line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if len(base64.b64encode(text.encode())) > OSC52_LIMIT_BYTES:
        return f"copied to {path}; too long for a terminal's clipboard"
    to_clipboard(text)
    return f"copied to the clipboard (if your terminal takes OSC 52) and to {path}"
