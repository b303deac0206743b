"""Commands that start a search or take one up again, hand a kernel to it, and stop it."""

from pathlib import Path
from typing import Annotated

import typer

from kbtui.cli_words import (
    Ascii,
    AsJson,
    BudgetText,
    Candidates,
    Detach,
    DeviceKey,
    GpuBudget,
    Headless,
    LlmTokens,
    LlmUrl,
    ProblemName,
    Refresh,
    RunName,
    RunOption,
    Theme,
    Workspace,
    budget_of,
    finish,
    has_terminal,
    look_of,
    settings_of,
    workspace_of,
)


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
    detach: Detach = False,
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


def resume(
    name: RunName = None,
    workspace: Workspace = None,
    budget: BudgetText = None,
    candidates: Candidates = None,
    gpu_budget: GpuBudget = None,
    llm_tokens: LlmTokens = None,
    llm_url: LlmUrl = None,
    headless: Headless = False,
    detach: Detach = False,
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


def stop(run: RunName = None, workspace: Workspace = None) -> None:
    """Stop a running search after its current evaluation. It can be resumed."""
    from kbtui.commands.run import stop as stop_run

    finish(stop_run(workspace_of(workspace), run))


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
