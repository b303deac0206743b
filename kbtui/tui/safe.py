"""What a model, a compiler or a person wrote must not command the terminal.

A summary, a hint, an error or a kernel may hold escape sequences, other control characters, or marks that turn the
direction of text round, so that code reads as what it is not. In code they are shown by a sign of one character; on
the way to the terminal whatever is left of them is dropped, wherever on the screen it stands.
"""

import re

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from kbtui.tui.widgets.paint import to_ascii

#: C0 and C1 controls, DEL, and the marks for direction: none of them takes a cell.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]")
_SIGNS = {
    **{n: chr(0x2400 + n) for n in range(0x20) if chr(n) not in "\t\n"},
    0x7F: "\u2421",
    **dict.fromkeys((*range(0x80, 0xA0), 0x061C, 0x200E, 0x200F), "\ufffd"),
    **dict.fromkeys((*range(0x2028, 0x202F), *range(0x2066, 0x206A)), "\ufffd"),
}  # fmt: skip


def shown(text: str) -> str:
    """The text with a sign for each character that is not to be sent, and its tabs as blanks; lines stay lines."""
    return text.replace("\r\n", "\n").translate(_SIGNS).expandtabs(4) if _UNSAFE.search(text) else text


class NothingButText(LineFilter):
    """The last gate before the terminal: no part of a line holds a control character, nor with ``ascii_only`` others.

    What the viewer draws is ASCII then by itself; this is for what others draw: a box, a scrollbar, what was typed.
    """

    def __init__(self, ascii_only: bool = False) -> None:
        super().__init__()
        self._ascii_only = ascii_only

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The segments as they were, where they are safe: nearly always."""
        return [
            segment
            if segment.control or (segment.text.isascii() and segment.text.isprintable())
            else self._clean(segment)
            for segment in segments
        ]

    def _clean(self, segment: Segment) -> Segment:
        """The part in as many cells as before."""
        text = _UNSAFE.sub("", segment.text)
        if self._ascii_only:
            text = "".join(c if c.isascii() else to_ascii(c) * cell_len(c) for c in text)
        return segment if text == segment.text else Segment(set_cell_size(text, segment.cell_length), segment.style)
