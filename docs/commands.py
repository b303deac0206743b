"""Write docs/commands.md from the command line itself: python docs/commands.py. A test compares the two."""

from collections.abc import Iterator
from pathlib import Path

import typer

from kbtui.cli import app

PAGE = Path(__file__).with_name("commands.md")


def page() -> str:
    """Every command with its words and options, as Markdown."""
    group = typer.main.get_command(app)
    commands = group.commands  # type: ignore[attr-defined]
    parts = ["# Commands", "", "Made by `python docs/commands.py`. `kbtui COMMAND --help` says the same.", ""]
    for name, command in _all("", commands):
        parts += [f"## kbtui {name}", "", " ".join((command.help or "").split()), ""]  # type: ignore[attr-defined]
        parts += [f"- {_words(p)}" for p in command.params if p.name != "help"]  # type: ignore[attr-defined]
        parts += [""]
    return "\n".join(parts)


def _all(above: str, commands: dict[str, object]) -> Iterator[tuple[str, object]]:
    """Commands with those below them."""
    for name, command in commands.items():
        yield f"{above}{name}", command
        yield from _all(f"{above}{name} ", getattr(command, "commands", {}))


def _words(parameter: object) -> str:
    names = getattr(parameter, "opts", ())
    shown = ", ".join(f"`{n}`" for n in names) if names and names[0].startswith("-") else f"`{names[0].upper()}`"
    help_text = " ".join((getattr(parameter, "help", None) or "").split())
    return f"{shown}: {help_text}" if help_text else shown


if __name__ == "__main__":
    PAGE.write_text(page())
    print(PAGE)
