"""The viewer's own themes: a dark and a light one, easy on the eyes for a night."""

from textual.theme import Theme

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
