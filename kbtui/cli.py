"""The command line: words in, one function called, an exit code out. Heavy imports stay inside the commands."""

import sys
from typing import Annotated

import typer

from kbtui import __version__
from kbtui.cli_guard import guarded
from kbtui.cli_kernel import bench, profile, verify
from kbtui.cli_leave import export, import_runs, report
from kbtui.cli_run import resume, run, stop, submit
from kbtui.cli_show import best, diff, list_runs, log, prompt, show, status
from kbtui.cli_view import attach, completion, serve, settings_app
from kbtui.cli_words import (
    Ascii,
    AsJson,
    Once,
    Readonly,
    Refresh,
    Theme,
    Workspace,
    finish,
    look_of,
    need_terminal,
    passed_on,
    settings_of,
    workspace_of,
)
from kbtui.console import write_any_character
from kbtui.errors import ExitCode

app = typer.Typer(
    name="kbtui",
    help="Make a Triton kernel faster on a budget, watch it happen, and believe the result.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _say_version(asked: bool) -> None:
    if asked:
        print(f"kbtui {__version__}")
        finish(ExitCode.DONE)


@app.callback(invoke_without_command=True)
def viewer(
    context: typer.Context,
    workspace: Workspace = None,
    once: Once = False,
    readonly: Readonly = None,
    theme: Theme = None,
    ascii_only: Ascii = None,
    refresh: Refresh = None,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="The version")
    ] = False,
) -> None:
    """Without a command: open the viewer on this workspace."""
    if context.invoked_subcommand is None:
        from kbtui.commands.view import snapshot, view

        settings = settings_of(
            workspace=workspace, refresh_hz=refresh, readonly=readonly, theme=theme, ascii_only=ascii_only
        )
        where = workspace_of(workspace)
        if once:
            finish(snapshot(where, None, look_of(settings)))
        need_terminal()
        finish(view(where, None, look_of(settings)))
    given = {"workspace": workspace, "readonly": readonly, "theme": theme, "ascii_only": ascii_only, "refresh": refresh}
    context.default_map = passed_on(
        context.command, {name: value for name, value in given.items() if value is not None}
    )


app.command()(run)
app.command()(resume)
app.command()(attach)
app.command()(serve)
app.command()(stop)
app.command()(status)
app.command("ls")(list_runs)
app.command()(show)
app.command()(diff)
app.command()(log)
app.command()(best)
app.command()(export)
app.command()(report)
app.command("import")(import_runs)
app.command()(verify)
app.command()(bench)
app.command()(profile)
app.command()(prompt)
app.command()(submit)


@app.command()
def doctor(workspace: Workspace = None, as_json: AsJson = False) -> None:
    """What this machine can do, and what to do about what it cannot."""
    from kbtui.commands.care import doctor as examine

    finish(examine(workspace_of(workspace), as_json))


app.add_typer(settings_app, name="config")
app.command()(completion)


@app.command()
def reindex(workspace: Workspace = None) -> None:
    """Rebuild the index from the kernel repository. Names artifacts that are missing."""
    from kbtui.commands.care import reindex as rebuild

    finish(rebuild(workspace_of(workspace)))


@app.command()
def version() -> None:
    """The version."""
    print(f"kbtui {__version__}")


def main() -> None:
    """The console script: every failure a user can cause is one line on stderr and the documented exit code."""
    write_any_character()
    sys.exit(int(guarded(app, sys.argv[1:])))


if __name__ == "__main__":
    main()
