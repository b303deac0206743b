"""Roles to styles of the theme, and plain ASCII where the terminal has nothing else."""

from textual.content import Content

from kbtui.tui.text import Line, Role

STYLES: dict[Role, str] = {
    Role.PLAIN: "",
    Role.DIM: "$kb-dim",
    Role.STRONG: "bold",
    Role.TITLE: "bold $text-primary",
    Role.ACCENT: "bold $text-accent",
    Role.KEY: "bold $text-accent",
    Role.GOOD: "bold $text-success",
    Role.BAD: "$text-error",
    Role.WARN: "$text-warning",
    Role.LOUD: "bold reverse $text-warning",
    Role.ALARM: "bold reverse $text-error",
    Role.CURVE: "$text-success",
    Role.LEVEL: "$text-warning",
    Role.LEVEL_2: "$text-primary",
    Role.SPEED_BEST: "bold $text-success",
    Role.SPEED_NEAR: "$text-success",
    Role.SPEED_FAIR: "$text-warning",
    Role.SPEED_SLOW: "$text-primary",
}

_TO_ASCII = str.maketrans({
    "×": "x", "–": "-", "—": "-", "−": "-", "µ": "u", "…": "~", "·": "-", "→": ">", "“": '"', "”": '"', "’": "'",
    "≤": "<", "≥": ">", "±": "+", "↑": "^", "↓": "v", "≠": "#", "²": "2",
    **dict.fromkeys("╭╮╰╯┌┐└┘┏┓┗┛├┤┼", "+"), **dict.fromkeys("─━╌▔▁▂▃▄▀", "-"), **dict.fromkeys("│┃▌▐▎▊", "|"),
    "█": "#", "\xa0": " ",
})  # fmt: skip


def to_ascii(text: str) -> str:
    """The text in ASCII, as many characters as before; what has no likeness becomes ``?``."""
    return text.translate(_TO_ASCII).encode("ascii", "replace").decode("ascii")


def paint(line: Line, ascii_only: bool = False) -> Content:
    """A line as styled content."""
    return Content.assemble(*((to_ascii(t) if ascii_only else t, STYLES[role]) for t, role in line if t))
