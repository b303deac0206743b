"""Effects: copies a text to a file, and by OSC 52 to the terminal's clipboard where it is small enough."""

import base64
from collections.abc import Callable
from pathlib import Path

from kbtui.tui.text import Told

#: Terminals and tmux drop an OSC 52 sequence above about 74,994 bytes of base64 (xterm's limit, the smallest).
OSC52_LIMIT_BYTES = 74_994


def copy(text: str, path: Path, to_clipboard: Callable[[str], None]) -> Told:
    """Write the text to ``path`` always, to the clipboard if it fits; says where it is now."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if len(base64.b64encode(text.encode())) > OSC52_LIMIT_BYTES:
        return Told("written; too long for a terminal's clipboard", str(path))
    to_clipboard(text)
    return Told("written; in the clipboard too, if your terminal takes OSC 52", str(path))
