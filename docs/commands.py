"""Write docs/commands.md from the command line itself: python docs/commands.py. A test compares the two."""

from pathlib import Path

import typer

from kbtui.cli import app

PAGE = Path(__file__).with_name("commands.md")


def page() -> str:
    """Every command with its words and options, as Markdown."""
    group = typer.main.get_command(app)
    commands = group.commands  # type: ignore[attr-defined]
    parts = ["# Commands", "", "Made by `python docs/commands.py`. `kbtui COMMAND --help` says the same.", ""]
    for name, command in commands.items():
        parts += [f"## kbtui {name}", "", " ".join((command.help or "").split()), ""]
        parts += [f"- {_words(parameter)}" for parameter in command.params if parameter.name != "help"]
        parts += [""]
    return "\n".join(parts)


def _words(parameter: object) -> str:
    names = getattr(parameter, "opts", ())
    shown = ", ".join(f"`{n}`" for n in names) if names and names[0].startswith("-") else f"`{names[0].upper()}`"
    help_text = " ".join((getattr(parameter, "help", None) or "").split())
    return f"{shown}: {help_text}" if help_text else shown


if __name__ == "__main__":
    PAGE.write_text(page())
    print(PAGE)
