"""The viewer's own themes: a dark and a light one, easy on the eyes for a night."""

from textual.theme import BUILTIN_THEMES, Theme

from kbtui.errors import UsageError

DARK = Theme(
    name="kbtui-dark",
    primary="#7aa2c8",
    secondary="#5f87a8",
    accent="#d7a65f",
    warning="#d7a65f",
    error="#d9737a",
    success="#8fbf7f",
    foreground="#cdd3da",
    background="#14171c",
    surface="#1a1e24",
    panel="#20252c",
    dark=True,
    variables={"border": "#343b45", "footer-key-foreground": "#d7a65f"},
)

LIGHT = Theme(
    name="kbtui-light",
    primary="#2f5f8a",
    secondary="#4a7396",
    accent="#8a5a00",
    warning="#8a5a00",
    error="#a8323c",
    success="#2f6f2f",
    foreground="#22272e",
    background="#f7f6f2",
    surface="#efeee9",
    panel="#e6e5df",
    dark=False,
    variables={"border": "#c3c2bb"},
)


def default_theme(term: str, colorterm: str, no_color: bool) -> str:
    """The terminal's own sixteen colours where it has no more or none are wanted, else the dark theme."""
    few = term in ("", "linux", "dumb", "ansi", "vt100", "vt220") or (
        term in ("xterm", "screen", "tmux") and not colorterm
    )
    return "ansi-dark" if few or no_color else DARK.name


def check_theme(name: str | None) -> None:
    """Raises UsageError on a theme that is not there; None stands for the terminal's own."""
    known = sorted({DARK.name, LIGHT.name, *BUILTIN_THEMES})
    if name is not None and name not in known:
        raise UsageError(f"no theme is named {name!r}", f"there are {', '.join(known)}")
