"""The command line: words in, one function called, an exit code out. Heavy imports stay inside the commands."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kbtui import __version__
from kbtui.console import hush, tell, write_any_character
from kbtui.errors import ExitCode, KbtuiError, UsageError

if TYPE_CHECKING:
    from kbtui.commands.run import Look
    from kbtui.config import Settings

app = typer.Typer(
    name="kbtui",
    help="Make a Triton kernel faster on a budget, watch it happen, and believe the result.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["--help", "-h"]},
)

Workspace = Annotated[Path | None, typer.Option("--workspace", "-w", help="Folder of runs; default ./.kbtui")]
RunName = Annotated[str | None, typer.Argument(metavar="[RUN]", help="A run's name; default the latest")]
RunOption = Annotated[str | None, typer.Option("--run", help="A run's name; default the latest")]
AsJson = Annotated[bool, typer.Option("--json", help="Data on stdout and nothing else")]
Ascii = Annotated[bool, typer.Option("--ascii", help="Draw with ASCII characters only")]
Refresh = Annotated[float | None, typer.Option("--refresh", help="Most redraws a second")]
DeviceKey = Annotated[
    str | None, typer.Option("--device", "-d", help="auto, cuda:N, model:a100, model:h100, model:h200, replay:POOL")
]
ProblemPath = Annotated[str | None, typer.Option("--problem", help="The run's problem, where it is elsewhere now")]
Headless = Annotated[bool, typer.Option("--headless", help="No viewer: the engine in the foreground")]
BudgetText = Annotated[str | None, typer.Option("--budget", "-b", help="Wall time to spend, as 90s, 10m or 1h30m")]
Candidates = Annotated[int | None, typer.Option("--candidates", min=1, help="Most candidates to try")]
GpuBudget = Annotated[str | None, typer.Option("--gpu-budget", help="GPU time to spend, as 90s or 10m")]
LlmTokens = Annotated[
    int | None, typer.Option("--llm-tokens", min=1, help="Tokens a language model may read and write")
]
LlmUrl = Annotated[
    str | None, typer.Option("--llm-url", help="A server of OpenAI's form instead of Ollama: http://HOST:PORT/v1")
]


def finish(code: int) -> None:
    raise typer.Exit(int(code))


def _say_version(asked: bool) -> None:
    if asked:
        print(f"kbtui {__version__}")
        finish(ExitCode.DONE)


@app.callback(invoke_without_command=True)
def viewer(
    context: typer.Context,
    workspace: Workspace = None,
    ascii_only: Ascii = False,
    refresh: Refresh = None,
    show_version: Annotated[bool, typer.Option("--version", callback=_say_version, is_eager=True)] = False,
) -> None:
    """Without a command: open the viewer on this workspace."""
    if context.invoked_subcommand is None:
        from kbtui.commands.run import view

        settings = _settings(workspace=workspace, refresh_hz=refresh)
        _need_terminal()
        finish(view(_workspace(workspace), None, _look(settings, ascii_only)))


@app.command()
def run(
    problem: Annotated[str, typer.Argument(help="A folder, a sample's name, or a KernelBench file")],
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
    seed: Annotated[int | None, typer.Option("--seed")] = None,
    child_entry: Annotated[str | None, typer.Option("--child-entry", help="parent or screen")] = None,
    unvetted: Annotated[
        bool, typer.Option("--unvetted", help="Search even if kernels that compute nothing would pass; the run says so")
    ] = False,
    headless: Headless = False,
    detach: Annotated[bool, typer.Option("--detach", help="Start the engine and return at once")] = False,
    as_json: AsJson = False,
    ascii_only: Ascii = False,
    refresh: Refresh = None,
) -> None:
    """Search for a faster kernel. Starts an engine that outlives this terminal, and opens the viewer on it."""
    from kbtui.commands.run import run_detached, run_headless
    from kbtui.domain.event import Budget, ChildEntry
    from kbtui.engine.spec import RunSpec
    from kbtui.kernel_file import with_kernel
    from kbtui.problems import load_problem

    settings = _settings(
        workspace=workspace,
        device=device,
        budget=budget,
        generators=generator,
        model=model,
        seed=seed,
        child_entry=child_entry,
        llm_url=llm_url,
        refresh_hz=refresh,
    )
    with_kernel(load_problem(problem), kernel)
    wall_s = None if budget is None and (candidates or gpu_budget) else _seconds(settings.budget)
    generators = tuple(settings.generators)
    if settings.model and "llm" not in generators:
        generators = (*generators, "llm")
    spec = RunSpec(
        workspace=str(_workspace(workspace)),
        problem=str(Path(problem).resolve()) if Path(problem).exists() else problem,
        device=settings.device,
        budget=Budget(wall_s, candidates, _seconds(gpu_budget) if gpu_budget else None, llm_tokens),
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
    finish(run_detached(spec, _has_terminal() and not detach, _look(settings, ascii_only)))


@app.command()
def resume(
    name: Annotated[str | None, typer.Argument(metavar="[RUN]")] = None,
    workspace: Workspace = None,
    budget: BudgetText = None,
    candidates: Candidates = None,
    gpu_budget: GpuBudget = None,
    llm_tokens: LlmTokens = None,
    llm_url: LlmUrl = None,
    headless: Headless = False,
    detach: Annotated[bool, typer.Option("--detach", help="Start the engine and return at once")] = False,
    as_json: AsJson = False,
    ascii_only: Ascii = False,
    refresh: Refresh = None,
) -> None:
    """Take a run up again where it was, spent budget included. A budget given here is spent from now on."""
    from kbtui.commands.run import run_detached, run_headless
    from kbtui.commands.where import open_reader, pick_run
    from kbtui.domain.event import Budget
    from kbtui.engine.spec import RunSpec

    settings = _settings(workspace=workspace, refresh_hz=refresh, llm_url=llm_url)
    where = _workspace(workspace)
    spec = RunSpec(
        workspace=str(where),
        problem="",
        run=pick_run(open_reader(where), name),
        budget=Budget(
            _seconds(budget) if budget else None, candidates, _seconds(gpu_budget) if gpu_budget else None, llm_tokens
        ),
        budget_given=any((budget, candidates, gpu_budget, llm_tokens)),
        ollama_host=settings.ollama_host,
        llm_url=settings.llm_url,
    )
    if headless or as_json:
        finish(run_headless(spec, as_json))
    finish(run_detached(spec, _has_terminal() and not detach, _look(settings, ascii_only)))


@app.command()
def attach(
    run: RunName = None, workspace: Workspace = None, ascii_only: Ascii = False, refresh: Refresh = None
) -> None:
    """Open the viewer on a run; leaving it leaves the search going."""
    from kbtui.commands.run import view
    from kbtui.commands.where import open_reader, pick_run

    settings = _settings(workspace=workspace, refresh_hz=refresh)
    where = _workspace(workspace)
    _need_terminal()
    finish(view(where, pick_run(open_reader(where), run), _look(settings, ascii_only)))


@app.command()
def stop(run: RunName = None, workspace: Workspace = None) -> None:
    """End a running search after its current evaluation; it can be resumed."""
    from kbtui.commands.run import stop as stop_run

    finish(stop_run(_workspace(workspace), run))


@app.command()
def status(run: RunName = None, workspace: Workspace = None, as_json: AsJson = False) -> None:
    """Where a run stands: is it alive, how good is the best, what was spent."""
    from kbtui.commands.show import status as show_status

    finish(show_status(_workspace(workspace), run, as_json))


@app.command("ls")
def list_runs(workspace: Workspace = None, as_json: AsJson = False) -> None:
    """The runs of this workspace, latest first."""
    from kbtui.commands.show import list_runs as show_runs

    finish(show_runs(_workspace(workspace), as_json))


@app.command()
def show(
    candidate: Annotated[str, typer.Argument(help="An id as c0031, or best, champion, first")] = "best",
    run: RunOption = None,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """One candidate: origin, every rung's outcome with its reason, and its code."""
    from kbtui.commands.show import show as show_candidate

    finish(show_candidate(_workspace(workspace), run, candidate, as_json))


@app.command()
def diff(
    old: Annotated[str, typer.Argument()] = "first",
    new: Annotated[str, typer.Argument()] = "best",
    run: RunOption = None,
    workspace: Workspace = None,
) -> None:
    """Unified diff of two candidates; without words, from the first kernel to the best."""
    from kbtui.commands.show import diff as show_diff

    finish(show_diff(_workspace(workspace), run, old, new))


@app.command()
def log(run: RunName = None, workspace: Workspace = None, as_json: AsJson = False) -> None:
    """The story of a run, one event a line; with --json one event a line as JSON."""
    from kbtui.commands.show import log as show_log

    finish(show_log(_workspace(workspace), run, as_json))


@app.command()
def best(run: RunName = None, workspace: Workspace = None, as_json: AsJson = False) -> None:
    """The champion, its times and PyTorch's; exit 1 where nothing better than the first kernel was found."""
    from kbtui.commands.show import best as show_best

    finish(show_best(_workspace(workspace), run, as_json))


@app.command()
def export(
    run: RunName = None,
    into: Annotated[Path | None, typer.Option("--into", "-o", help="A new folder; default ./RUN-export")] = None,
    problem: ProblemPath = None,
    workspace: Workspace = None,
) -> None:
    """A folder that stands alone: the best kernel, the reference, a check without kbtui, results and artifacts."""
    from kbtui.commands.leave import export as write_export

    finish(write_export(_workspace(workspace), run, into, problem))


@app.command()
def report(
    run: RunName = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The file; default ./RUN.html")] = None,
    problem: ProblemPath = None,
    workspace: Workspace = None,
) -> None:
    """One HTML page that opens offline: result, curve, ladder, roofline, candidates, lineage, difference."""
    from kbtui.commands.leave import report as write_report

    finish(write_report(_workspace(workspace), run, out, problem))


@app.command("import")
def import_runs(
    source: Annotated[Path, typer.Argument(help="A repository, a bundle file, or another workspace")],
    run: Annotated[list[str] | None, typer.Option("--run", help="Only this run; may be given again")] = None,
    workspace: Workspace = None,
) -> None:
    """Bring runs in from another machine's repository, under another name where theirs is taken."""
    from kbtui.commands.leave import import_runs as bring_in

    finish(bring_in(_workspace(workspace), source, tuple(run or ())))


@app.command()
def verify(
    problem: Annotated[str, typer.Argument(help="A folder, a sample's name, or a KernelBench file")],
    kernel: Annotated[Path | None, typer.Option("--kernel", help="Default: the problem's first kernel")] = None,
    device: DeviceKey = None,
    seed: Annotated[int, typer.Option("--seed")] = 0,
    explain: Annotated[
        bool, typer.Option("--explain", help="The policy and the gate as applied here; with --kernel, what it checked")
    ] = False,
    harden: Annotated[
        bool, typer.Option("--harden", help="For a KernelBench file: inputs and a tolerance that make it sound")
    ] = False,
    write: Annotated[
        Path | None, typer.Option("--write", help="With --harden: a new folder for the problem that is sound")
    ] = None,
    allclose: Annotated[
        float | None, typer.Option("--allclose", min=0, help="Vet by torch.allclose with this atol and rtol instead")
    ] = None,
    bisect: Annotated[bool, typer.Option("--bisect", help="For git bisect run: 125 instead of 2, 3 and 4")] = False,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """Vet a problem, then run a kernel through the whole gate: 0 verified, 1 rejected, 2 refused, 3 unverified."""
    from kbtui.commands.verify import BISECT_SKIP, Asked
    from kbtui.commands.verify import verify as run_gate

    settings = _settings(workspace=workspace, device=device)
    if explain and kernel is None and not harden:
        from kbtui.commands.explain import explain_problem

        finish(explain_problem(problem, settings.device, as_json))
    asked = Asked(_workspace(workspace), problem, kernel, settings.device, seed, as_json, explain, allclose)
    if harden or write is not None:
        from kbtui.commands.harden import harden_file

        finish(harden_file(asked, write))
    try:
        code = run_gate(asked)
    except KbtuiError as error:
        if not bisect:
            raise
        print(f"kbtui: {error}", file=sys.stderr)
        code = int(error.exit_code)
    finish(BISECT_SKIP if bisect and code not in (ExitCode.DONE, ExitCode.NOTHING_BETTER) else code)


@app.command()
def bench(
    problem: Annotated[str, typer.Argument(help="A folder, a sample's name, or a KernelBench file")],
    kernel: Annotated[
        list[Path] | None, typer.Option("--kernel", help="Another kernel to time; may be repeated")
    ] = None,
    device: DeviceKey = None,
    pairs: Annotated[int, typer.Option("--pairs", min=4, max=400, help="Most pairs a shape and process")] = 12,
    processes: Annotated[int, typer.Option("--processes", min=2, max=32, help="Fresh process pairs")] = 3,
    no_compile: Annotated[bool, typer.Option("--no-compile", help="Leave torch.compile out")] = False,
    seed: Annotated[int, typer.Option("--seed")] = 0,
    workspace: Workspace = None,
    as_json: AsJson = False,
    ascii_only: Ascii = False,
) -> None:
    """Time kernels beside PyTorch, without a search: a table with intervals, and histograms."""
    from kbtui.commands.bench import bench as run_bench
    from kbtui.commands.bench import bench_rung

    settings = _settings(workspace=workspace, device=device)
    files, rung = tuple(kernel or ()), bench_rung(pairs, processes)
    where = _workspace(workspace)
    finish(run_bench(where, problem, files, settings.device, rung, not no_compile, seed, as_json, ascii_only))


@app.command()
def profile(
    problem: Annotated[str, typer.Argument(help="A folder, a sample's name, or a KernelBench file")],
    kernel: Annotated[Path | None, typer.Option("--kernel", help="The kernel; default the problem's own")] = None,
    shape: Annotated[str | None, typer.Option("--shape", help="A timed shape; default the first")] = None,
    device: DeviceKey = None,
    seed: Annotated[int, typer.Option("--seed")] = 0,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """What bounds a kernel, with the numbers behind it, and what to do: by Nsight Compute, or without counters."""
    from kbtui.commands.profile import profile as run_profile

    settings = _settings(workspace=workspace, device=device)
    finish(run_profile(_workspace(workspace), problem, kernel, shape, settings.device, seed, as_json))


@app.command()
def prompt(
    candidate: Annotated[str, typer.Argument(help="An id as c0031, or best, champion, first")] = "best",
    run: RunOption = None,
    workspace: Workspace = None,
) -> None:
    """Print the prompt that asks for a better kernel than this candidate, to be answered by anyone."""
    from kbtui.commands.show import prompt as show_prompt

    finish(show_prompt(_workspace(workspace), run, candidate))


@app.command()
def submit(
    file: Annotated[Path, typer.Argument(help="A kernel with kernel_function")],
    run: RunOption = None,
    parent: Annotated[str | None, typer.Option("--parent", help="The candidate it was made from")] = None,
    note: Annotated[str, typer.Option("--note", help="One line: what was changed")] = "",
    workspace: Workspace = None,
) -> None:
    """Put your own kernel in a run's queue, like any other candidate."""
    from kbtui.commands.steer import submit as queue_kernel

    finish(queue_kernel(_workspace(workspace), run, file, parent, note))


@app.command()
def doctor(workspace: Workspace = None, as_json: AsJson = False) -> None:
    """What this machine can do, and what to do about what it cannot."""
    from kbtui.commands.care import doctor as examine

    finish(examine(_workspace(workspace), as_json))


@app.command()
def config(as_json: AsJson = False) -> None:
    """Every setting, its value, and where the value came from."""
    from kbtui.commands.care import config as show_config

    finish(show_config(as_json))


@app.command()
def reindex(workspace: Workspace = None) -> None:
    """Rebuild the SQLite index from the kernel repository; names artifacts that are missing."""
    from kbtui.commands.care import reindex as rebuild

    finish(rebuild(_workspace(workspace)))


@app.command()
def version() -> None:
    """The version."""
    print(f"kbtui {__version__}")


def _settings(**flags: object) -> "Settings":
    from kbtui.config import load_settings

    return load_settings(**{key: value for key, value in flags.items() if value is not None})


def _workspace(flag: Path | None) -> Path:
    from kbtui.paths import resolve_workspace

    return resolve_workspace(flag)


def _seconds(text: str) -> float:
    from kbtui.budget import parse_duration_s

    return parse_duration_s(text)


def _look(settings: "Settings", ascii_only: bool) -> "Look":
    from kbtui.commands.run import Look

    return Look(settings.refresh_hz, ascii_only, settings.theme)


def _has_terminal() -> bool:
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def _need_terminal() -> None:
    if not _has_terminal():
        raise UsageError("the viewer needs a terminal", "use kbtui status, or kbtui log, where there is none")


def main() -> None:
    """The console script: every failure a user can cause is one line on stderr and the documented exit code."""
    write_any_character()
    sys.exit(int(_guarded(sys.argv[1:])))


def _guarded(words: list[str]) -> int:
    """The process's boundary: what a command raises becomes a line and a code. KBTUI_TRACEBACK=1 shows a defect's."""
    try:
        return _invoke(words)
    except KbtuiError as error:
        return _fail(str(error), error.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        return _fail("interrupted", ExitCode.INTERRUPTED)
    except typer.TyperException as error:
        return _fail(f"{error.format_message().rstrip('.')}; kbtui --help lists what there is", ExitCode.USAGE)
    except BrokenPipeError:
        hush()
        return ExitCode.DONE
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return _fail(f"{what}; mend that, then try again", ExitCode.NO_DEVICE)
    except Exception as error:
        if os.environ.get("KBTUI_TRACEBACK"):
            raise
        first = (str(error).splitlines() or [""])[0][:300]
        told = f"a defect of kbtui: {type(error).__name__}: {first}"
        return _fail(f"{told}; please report it, with what KBTUI_TRACEBACK=1 shows", ExitCode.ENGINE_FAILED)


def _invoke(words: list[str]) -> int:
    command = typer.main.get_command(app)
    try:
        with command.make_context("kbtui", words) as context:
            command.invoke(context)
    except typer.Exit as ended:
        return ended.exit_code
    finally:
        if sys.stdout is not None:
            sys.stdout.flush()
    return ExitCode.DONE


def _fail(line: str, code: ExitCode) -> ExitCode:
    tell(f"kbtui: {' '.join(line.split())}")
    return code


if __name__ == "__main__":
    main()
