"""Commands by which a run leaves this workspace, or comes into it."""

from pathlib import Path
from typing import Annotated

import typer

from kbtui.cli_words import ProblemPath, RunName, Workspace, finish, workspace_of


def export(
    run: RunName = None,
    into: Annotated[Path | None, typer.Option("--into", "-o", help="A new folder; default ./RUN-export")] = None,
    problem: ProblemPath = None,
    workspace: Workspace = None,
) -> None:
    """Write a folder that stands alone. It has the best kernel, the reference, a check without kbtui, the results."""
    from kbtui.commands.leave import export as write_export

    finish(write_export(workspace_of(workspace), run, into, problem))


def report(
    run: RunName = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The file; default ./RUN.html")] = None,
    problem: ProblemPath = None,
    workspace: Workspace = None,
) -> None:
    """Write one HTML page that opens offline. It has the result, curve, ladder, roofline, candidates, lineage."""
    from kbtui.commands.leave import report as write_report

    finish(write_report(workspace_of(workspace), run, out, problem))


def import_runs(
    source: Annotated[Path, typer.Argument(help="A repository, a bundle file, or another workspace")],
    run: Annotated[list[str] | None, typer.Option("--run", help="Only this run; may be given again")] = None,
    workspace: Workspace = None,
) -> None:
    """Bring runs in from another machine. They get another name where theirs is taken."""
    from kbtui.commands.leave import import_runs as bring_in

    finish(bring_in(workspace_of(workspace), source, tuple(run or ())))
