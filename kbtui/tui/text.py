"""Styled lines as plain values: a line is parts of text, each with the role it plays. No Textual here."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rich.cells import cell_len, set_cell_size


class Role(StrEnum):
    """What a part of a line is; the theme decides how it looks, and a sign or a word always says it too."""

    PLAIN = "plain"
    DIM = "dim"
    STRONG = "strong"
    TITLE = "title"
    ACCENT = "accent"
    KEY = "key"
    GOOD = "good"
    BAD = "bad"
    WARN = "warn"
    LOUD = "loud"
    ALARM = "alarm"
    CURVE = "curve"
    LEVEL = "level"
    LEVEL_2 = "level_2"
    SPEED_BEST = "speed_best"
    SPEED_NEAR = "speed_near"
    SPEED_FAIR = "speed_fair"
    SPEED_SLOW = "speed_slow"


Part = tuple[str, Role]
Line = tuple[Part, ...]


def line(*parts: Part | str) -> Line:
    """Parts as given; bare strings are plain."""
    return tuple((p, Role.PLAIN) if isinstance(p, str) else p for p in parts)


def plain(parts: Line) -> str:
    return "".join(text for text, _ in parts)


def width_of(parts: Line) -> int:
    """Terminal cells the line takes."""
    return sum(cell_len(text) for text, _ in parts)


def clip(parts: Line, width: int, ellipsis: str = "…") -> Line:
    """The line cut to ``width`` cells, its end marked where something was cut."""
    if width_of(parts) <= width:
        return parts
    room = max(width - cell_len(ellipsis), 0)
    kept: list[Part] = []
    for text, role in parts:
        cells = cell_len(text)
        if cells > room:
            kept.append((set_cell_size(text, room) + ellipsis[: width or 0], role))
            break
        kept.append((text, role))
        room -= cells
    return tuple(kept)


def fit(text: str, width: int, ellipsis: str = "…") -> str:
    """Text cut or padded to exactly ``width`` cells."""
    if cell_len(text) > width:
        text = set_cell_size(text, max(width - cell_len(ellipsis), 0)) + ellipsis
    return set_cell_size(text, max(width, 0))


def fit_end(text: str, width: int, ellipsis: str = "…") -> str:
    """Text cut from the left to at most ``width`` cells: of a path, the end says most."""
    if cell_len(text) <= width:
        return text
    kept, room = "", width - cell_len(ellipsis)
    for character in reversed(text):
        if cell_len(character) + cell_len(kept) > room:
            break
        kept = character + kept
    return set_cell_size(ellipsis, min(cell_len(ellipsis), max(width, 0))) + kept


@dataclass(frozen=True, slots=True)
class Told:
    """What the viewer answers to a key; ``path`` is the file it is about, if any, and is said first."""

    words: str = ""
    path: str = ""


def told_line(told: Told, width: int, ellipsis: str = "…") -> Line:
    """The answer in ``width`` cells: a path whole where it fits, else its end; the words in what is left."""
    path = f" {fit_end(told.path, width - 1, ellipsis)}" if told.path else ""
    words = clip(line((f" {told.words}", Role.STRONG)), max(width - cell_len(path), 0), ellipsis)
    return line((path, Role.STRONG), *words) if path else words


def spread(left: Line, right: Line, width: int, ellipsis: str = "…") -> Line:
    """``left`` and ``right`` at the two ends of ``width`` cells; the left is cut if they would meet."""
    room = width - width_of(right) - 1
    if room < 4:
        return clip(left, width, ellipsis)
    left = clip(left, room, ellipsis)
    return (*left, (" " * (width - width_of(left) - width_of(right)), Role.PLAIN), *right)


def join(lines: Iterable[Line], between: str) -> Line:
    """Lines put one after the other with plain text between them."""
    parts: list[Part] = []
    for item in lines:
        if parts:
            parts.append((between, Role.DIM))
        parts.extend(item)
    return tuple(parts)


def n_fitting(text: str, room: int) -> int:
    """How many of the text's first characters take at most ``room`` cells; one at least, lest a caller not get on."""
    if text.isascii():
        return max(min(len(text), room), 1)
    low, high = 1, max(len(text), 1)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if cell_len(text[:middle]) <= room else (low, middle - 1)
    return low


def longest_fitting(texts: Sequence[str], room: int) -> str:
    """The first that is not longer than the room: a figure is left out rather than cut."""
    return next((text for text in texts if len(text) <= room), "")


def wrap(text: str, width: int, role: Role = Role.PLAIN, indent: str = "", most: int | None = None) -> list[Line]:
    """Words filled into lines of ``width`` cells; at most ``most`` lines, the last cut with an ellipsis."""
    rows: list[str] = []
    row, room = "", max(width - len(indent), 1)
    for word in text.split():
        if row and cell_len(row) + 1 + cell_len(word) > room:
            rows.append(indent + row)
            row = ""
        while not row and cell_len(word) > room:
            n = n_fitting(word, room)
            rows.append(indent + word[:n])
            word = word[n:]
        row = f"{row} {word}" if row else word
    if row:
        rows.append(indent + row)
    if most is not None and len(rows) > most:
        rows = [*rows[: most - 1], fit(rows[most - 1] + " …", width)]
    return [((r, role),) for r in rows]


def columns(cells: Sequence[tuple[str, int, bool]]) -> str:
    """Cells of (text, width, right-aligned) set side by side with one space between."""
    out = []
    for text, width, right in cells:
        text = fit(text, width) if cell_len(text) > width else text
        out.append((" " * (width - cell_len(text)) + text) if right else text + " " * (width - cell_len(text)))
    return " ".join(out)
