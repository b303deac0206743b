"""The terminal: size, colours, tmux, copying. Effects: reads the environment, asks tmux."""

import os
import shutil
import sys
from collections.abc import Mapping

from kbtui.doctor_probes.check import Check, State
from kbtui.doctor_probes.child import output_lines

LEAST_COLUMNS, LEAST_LINES = 80, 24
#: Terminals known to take OSC 52, by TERM_PROGRAM or a part of TERM.
_COPIES = ("iterm", "wezterm", "kitty", "ghostty", "alacritty", "foot", "vscode", "windows-terminal", "rio", "contour")


def terminal_check() -> Check:
    size = shutil.get_terminal_size()
    encoding = (sys.stdout.encoding or "").lower()
    return judge_terminal(sys.stdout.isatty(), size.columns, size.lines, encoding, os.environ)


def judge_terminal(is_tty: bool, n_columns: int, n_lines: int, encoding: str, env: Mapping[str, str]) -> Check:
    if not is_tty:
        return Check("terminal", State.ABSENT, "stdout is no terminal", "kbtui run --headless needs none")
    found = f"{n_columns}x{n_lines}, {_colours(env)}, {encoding or 'unknown encoding'}"
    if n_columns < LEAST_COLUMNS or n_lines < LEAST_LINES:
        advice = f"the viewer wants {LEAST_COLUMNS}x{LEAST_LINES}: make the window larger"
        return Check("terminal", State.WARN, found, advice)
    if "utf" not in encoding:
        return Check("terminal", State.WARN, found, "use kbtui --ascii, or set LANG=C.UTF-8")
    return Check("terminal", State.OK, found)


def _colours(env: Mapping[str, str]) -> str:
    if env.get("NO_COLOR"):
        return "no colours (NO_COLOR)"
    if env.get("COLORTERM", "") in ("truecolor", "24bit"):
        return "24-bit colours"
    return "256 colours" if "256" in env.get("TERM", "") else f"few colours (TERM={env.get('TERM', 'unset')})"


def clipboard_check() -> Check:
    setting = None
    if os.environ.get("TMUX"):
        setting = next(iter(output_lines(["tmux", "show-options", "-gsv", "set-clipboard"])), "unknown")
    return judge_clipboard(sys.stdout.isatty(), setting, os.environ)


def judge_clipboard(is_tty: bool, tmux_setting: str | None, env: Mapping[str, str]) -> Check:
    """Whether copying (OSC 52) can reach the user's clipboard; ``tmux_setting`` is its set-clipboard, None outside."""
    if not is_tty:
        return Check("copying", State.ABSENT, "stdout is no terminal")
    if tmux_setting is not None and tmux_setting != "on":
        advice = "in tmux: set -s set-clipboard on; what is copied is written to a file as well"
        return Check("copying", State.WARN, f"tmux has set-clipboard {tmux_setting}", advice)
    inside = "inside tmux" if tmux_setting else "directly"
    program = env.get("TERM_PROGRAM", "") + " " + env.get("TERM", "") + (" windows-terminal" * ("WT_SESSION" in env))
    if any(name in program.lower() for name in _COPIES):
        return Check("copying", State.OK, f"OSC 52 {inside}")
    return Check("copying", State.OK, f"OSC 52 {inside}, if the terminal takes it; a file is written as well")
