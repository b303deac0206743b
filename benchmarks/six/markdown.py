"""Tables and paragraphs of Markdown, as the documents have them. Pure."""

from collections.abc import Callable, Iterable, Sequence
from textwrap import fill

Row = Sequence[str]
WIDTH = 120


def wrapped(part: str) -> str:
    """Paragraphs at the documents' width; tables, headings, lists and pictures as they are."""
    blocks = part.split("\n\n")
    return "\n\n".join(b if b[0] in "|#-!" else _filled(b) for b in blocks)


def _filled(paragraph: str) -> str:
    """No line begins with a unit."""
    return fill(paragraph.replace(" %", "\0%"), WIDTH, break_on_hyphens=False).replace("\0", " ")


def markdown_table(head: Row, rows: Iterable[Row]) -> str:
    cell: Callable[[str], str] = lambda text: text.replace("|", "\\|").replace("\n", " ")  # noqa: E731
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell(text) for text in line) + " |" for line in lines)
