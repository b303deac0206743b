"""The command line: words in, one function called, an exit code out. Heavy imports stay inside the commands."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from kbtui import __version__
from kbtui.cli_guard import guarded
from kbtui.cli_kernel import bench, profile, verify
from kbtui.cli_leave import export, import_runs, report
from kbtui.cli_view import attach, completion, serve, settings_app
from kbtui.cli_words import (
    Ascii,
    AsJson,
    BudgetText,
    CandidateName,
    Candidates,
    DeviceKey,
    GpuBudget,
    Headless,
    LlmTokens,
    LlmUrl,
    Once,
    ProblemName,
    Readonly,
    Refresh,
    RunName,
    RunOption,
    Theme,
    Workspace,
    budget_of,
    finish,
    has_terminal,
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


@app.command()
def run(
    problem: ProblemName,
    workspace: Workspace = None,
    device: DeviceKey = None,
    budget: BudgetText = None,
    candidates: Candidates = None,
    gpu_budget: GpuBudget = None,
    llm_tokens: LlmTokens = None,
    generator: Annotated[str | None, typer.Option("--generator", help="playbook,rewrites,llm")] = None,
    model: Annotated[str | None, typer.Option("--model", help="A language model; turns the llm generator on")] = None,
    llm_url: LlmUrl = None,
    kernel: Annotated[Path | None, typer.Option("--kernel", help="First kernel, instead of the problem's")] = None,
    repo: Annotated[Path | None, typer.Option("--repo", help="Your git repository, to add the run's branch to")] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed of inputs and choices")] = None,
    child_entry: Annotated[str | None, typer.Option("--child-entry", help="parent or screen")] = None,
    unvetted: Annotated[
        bool, typer.Option("--unvetted", help="Search even if kernels that compute nothing would pass; the run says so")
    ] = False,
    headless: Headless = False,
    detach: Annotated[bool, typer.Option("--detach", help="Start the engine and return at once")] = False,
    as_json: AsJson = False,
    theme: Theme = None,
    ascii_only: Ascii = None,
    refresh: Refresh = None,
) -> None:
    """Search for a faster kernel. Starts an engine that outlives this terminal, and opens the viewer on it."""
    from kbtui.commands.run import run_detached, run_headless
    from kbtui.domain.event import ChildEntry
    from kbtui.engine.spec import RunSpec
    from kbtui.kernel_file import with_kernel
    from kbtui.problems import load_problem

    settings = settings_of(
        workspace=workspace,
        device=device,
        budget=budget,
        generators=generator,
        model=model,
        seed=seed,
        child_entry=child_entry,
        llm_url=llm_url,
        refresh_hz=refresh,
        theme=theme,
        ascii_only=ascii_only,
    )
    with_kernel(load_problem(problem), kernel)
    wall = None if budget is None and (candidates or gpu_budget is not None) else settings.budget
    generators = tuple(settings.generators)
    if settings.model and "llm" not in generators:
        generators = (*generators, "llm")
    spec = RunSpec(
        workspace=str(workspace_of(workspace)),
        problem=str(Path(problem).resolve()) if Path(problem).exists() else problem,
        device=settings.device,
        budget=budget_of(wall, candidates, gpu_budget, llm_tokens),
        generators=generators,
        model=settings.model,
        ollama_host=settings.ollama_host,
        llm_url=settings.llm_url,
        seed=settings.seed,
        child_entry=ChildEntry(settings.child_entry),
        kernel=str(kernel.resolve()) if kernel else None,
        repo=str(repo.resolve()) if repo else None,
        unvetted=unvetted,
    )
    if headless or as_json:
        finish(run_headless(spec, as_json))
    finish(run_detached(spec, has_terminal() and not detach, look_of(settings)))


@app.command()
def resume(
    name: RunName = None,
    workspace: Workspace = None,
    budget: BudgetText = None,
    candidates: Candidates = None,
    gpu_budget: GpuBudget = None,
    llm_tokens: LlmTokens = None,
    llm_url: LlmUrl = None,
    headless: Headless = False,
    detach: Annotated[bool, typer.Option("--detach", help="Start the engine and return at once")] = False,
    as_json: AsJson = False,
    theme: Theme = None,
    ascii_only: Ascii = None,
    refresh: Refresh = None,
) -> None:
    """Take a run up again where it was, spent budget included. A budget given here is spent from now on."""
    from kbtui.commands.run import run_detached, run_headless
    from kbtui.commands.where import open_reader, pick_run
    from kbtui.domain.event import Budget
    from kbtui.engine.spec import RunSpec

    settings = settings_of(workspace=workspace, refresh_hz=refresh, llm_url=llm_url, theme=theme, ascii_only=ascii_only)
    more = budget_of(budget, candidates, gpu_budget, llm_tokens)
    where = workspace_of(workspace)
    spec = RunSpec(
        workspace=str(where),
        problem="",
        run=pick_run(open_reader(where), name),
        budget=more,
        budget_given=more != Budget(),
        ollama_host=settings.ollama_host,
        llm_url=settings.llm_url,
    )
    if headless or as_json:
        finish(run_headless(spec, as_json))
    finish(run_detached(spec, has_terminal() and not detach, look_of(settings)))


app.command()(attach)
app.command()(serve)


@app.command()
def stop(run: RunName = None, workspace: Workspace = None) -> None:
    """Stop a running search after its current evaluation. It can be resumed."""
    from kbtui.commands.run import stop as stop_run

    finish(stop_run(workspace_of(workspace), run))


@app.command()
def status(run: RunName = None, workspace: Workspace = None, as_json: AsJson = False) -> None:
    """Where a run stands. Is it alive, how good is the best, what was spent."""
    from kbtui.commands.show import status as show_status

    finish(show_status(workspace_of(workspace), run, as_json))


@app.command("ls")
def list_runs(workspace: Workspace = None, as_json: AsJson = False) -> None:
    """The runs of this workspace, latest first."""
    from kbtui.commands.show import list_runs as show_runs

    finish(show_runs(workspace_of(workspace), as_json))


@app.command()
def show(
    candidate: CandidateName = "best",
    run: RunOption = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """One candidate. Its origin, every rung's outcome with its reason, and its code."""
    from kbtui.commands.show import show as show_candidate

    finish(show_candidate(workspace_of(workspace), run, candidate, as_json))


@app.command()
def diff(
    old: CandidateName = "first",
    new: CandidateName = "best",
    run: RunOption = None,
    workspace: Workspace = None,
) -> None:
    """Unified diff of two candidates. Without words, from the first kernel to the best."""
    from kbtui.commands.show import diff as show_diff

    finish(show_diff(workspace_of(workspace), run, old, new))


@app.command()
def log(run: RunName = None, workspace: Workspace = None, as_json: AsJson = False) -> None:
    """The story of a run, one event a line. With --json each line is JSON."""
    from kbtui.commands.show import log as show_log

    finish(show_log(workspace_of(workspace), run, as_json))


@app.command()
def best(run: RunName = None, workspace: Workspace = None, as_json: AsJson = False) -> None:
    """The champion, its times and PyTorch's. Exit 1 where nothing better than the first kernel was found."""
    from kbtui.commands.show import best as show_best

    finish(show_best(workspace_of(workspace), run, as_json))


app.command()(export)
app.command()(report)
app.command("import")(import_runs)


app.command()(verify)
app.command()(bench)
app.command()(profile)


@app.command()
def prompt(
    candidate: CandidateName = "best",
    run: RunOption = None,
    workspace: Workspace = None,
) -> None:
    """Print the prompt for a better kernel than a candidate. Anyone may answer it, see submit."""
    from kbtui.commands.show import prompt as show_prompt

    finish(show_prompt(workspace_of(workspace), run, candidate))


@app.command()
def submit(
    file: Annotated[Path, typer.Argument(help="A kernel with kernel_function")],
    run: RunOption = None,
    parent: Annotated[str | None, typer.Option("--parent", help="The candidate it was made from")] = None,
    note: Annotated[str, typer.Option("--note", help="One line: what was changed")] = "",
    workspace: Workspace = None,
) -> None:
    """Put your own kernel in a run's queue. It is judged like any other candidate."""
    from kbtui.commands.steer import submit as queue_kernel

    finish(queue_kernel(workspace_of(workspace), run, file, parent, note))


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
