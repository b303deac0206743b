"""Commands about looking: the viewer here, once, or in a browser; settings; shell completion."""

from typing import Annotated

import typer

from kbtui.cli_words import (
    Ascii,
    AsJson,
    Once,
    Readonly,
    Refresh,
    RunName,
    Theme,
    Workspace,
    finish,
    look_of,
    need_terminal,
    settings_of,
    workspace_of,
)

settings_app = typer.Typer(help="Every setting, its value, and where the value came from.", invoke_without_command=True)


def attach(
    run: RunName = None,
    workspace: Workspace = None,
    once: Once = False,
    readonly: Readonly = None,
    theme: Theme = None,
    ascii_only: Ascii = None,
    refresh: Refresh = None,
) -> None:
    """Open the viewer on a run. Leaving it leaves the search going."""
    from kbtui.commands.view import snapshot, view
    from kbtui.commands.where import open_reader, pick_run

    settings = settings_of(
        workspace=workspace, refresh_hz=refresh, readonly=readonly, theme=theme, ascii_only=ascii_only
    )
    where = workspace_of(workspace)
    if once:
        finish(snapshot(where, run, look_of(settings)))
    need_terminal()
    finish(view(where, pick_run(open_reader(where), run), look_of(settings)))


def serve(
    run: RunName = None,
    workspace: Workspace = None,
    host: Annotated[str, typer.Option("--host", help="The address to listen at")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="The port to listen at")] = 8000,
    steer: Annotated[bool, typer.Option("--steer", help="Let the browser steer; without it, it only looks")] = False,
    theme: Theme = None,
    refresh: Refresh = None,
) -> None:
    """Show the viewer in a browser. It is at http://127.0.0.1:8000, and only looks unless --steer is given."""
    from kbtui.commands.serve import serve as serve_viewer

    settings = settings_of(workspace=workspace, refresh_hz=refresh, theme=theme)
    finish(serve_viewer(workspace_of(workspace), run, look_of(settings), host, port, steer))


@settings_app.callback()
def config(context: typer.Context, as_json: AsJson = False) -> None:
    """Every setting, its value, and where the value came from. `config keys` lists the viewer's keys."""
    from kbtui.commands.settings import show_settings

    if context.invoked_subcommand is None:
        finish(show_settings(as_json))


@settings_app.command("show")
def config_show(as_json: AsJson = False) -> None:
    """Every setting, its value, and where the value came from."""
    from kbtui.commands.settings import show_settings

    finish(show_settings(as_json))


@settings_app.command("keys")
def config_keys(as_json: AsJson = False) -> None:
    """The viewer's keys by the names that the setting `keys` takes, with what they do."""
    from kbtui.commands.settings import show_keys

    finish(show_keys(as_json))


def completion(shell: Annotated[str, typer.Argument(help="bash, zsh or fish")]) -> None:
    """Print what makes a shell complete kbtui's words. As in: eval "$(kbtui completion bash)"."""
    from kbtui.cli_completion import SHELLS, script
    from kbtui.errors import UsageError

    if shell not in SHELLS:
        raise UsageError(f"no completion for {shell!r}", f"there is one for {', '.join(SHELLS)}")
    print(script(shell), end="")
