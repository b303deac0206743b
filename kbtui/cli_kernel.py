"""Commands about one kernel, without a search: is it right, how fast is it, what bounds it."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from kbtui.cli_words import Ascii, AsJson, DeviceKey, ProblemName, Workspace, finish, settings_of, workspace_of
from kbtui.errors import ExitCode, KbtuiError


def verify(
    problem: ProblemName,
    kernel: Annotated[Path | None, typer.Option("--kernel", help="Default: the problem's first kernel")] = None,
    device: DeviceKey = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of inputs and choices")] = 0,
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
    """Vet a problem, then run a kernel through the whole gate. Exit 0 verified, 1 rejected, 2 refused, 3 unverified."""
    from kbtui.commands.verify import BISECT_SKIP, Asked
    from kbtui.commands.verify import verify as run_gate

    try:
        settings = settings_of(workspace=workspace, device=device)
        if explain and kernel is None and not harden:
            from kbtui.commands.explain import explain_problem

            finish(explain_problem(problem, settings.device, as_json))
        asked = Asked(workspace_of(workspace), problem, kernel, settings.device, seed, as_json, explain, allclose)
        if harden or write is not None:
            from kbtui.commands.harden import harden_file

            finish(harden_file(asked, write))
        code = run_gate(asked)
    except KbtuiError as error:
        if not bisect:
            raise
        print(f"kbtui: {error}", file=sys.stderr)
        code = int(error.exit_code)
    finish(BISECT_SKIP if bisect and code not in (ExitCode.DONE, ExitCode.NOTHING_BETTER) else code)


def bench(
    problem: ProblemName,
    kernel: Annotated[
        list[Path] | None, typer.Option("--kernel", help="Another kernel to time; may be repeated")
    ] = None,
    device: DeviceKey = None,
    pairs: Annotated[int, typer.Option("--pairs", min=4, max=400, help="Most pairs a shape and process")] = 12,
    processes: Annotated[int, typer.Option("--processes", min=2, max=32, help="Fresh process pairs")] = 3,
    no_compile: Annotated[bool, typer.Option("--no-compile", help="Leave torch.compile out")] = False,
    seed: Annotated[int, typer.Option("--seed", help="Seed of inputs and choices")] = 0,
    workspace: Workspace = None,
    as_json: AsJson = False,
    ascii_only: Ascii = None,
) -> None:
    """Time kernels beside PyTorch, without a search. A table with intervals, and histograms."""
    from kbtui.commands.bench import bench as run_bench
    from kbtui.commands.bench import bench_rung

    settings = settings_of(workspace=workspace, device=device, ascii_only=ascii_only)
    files, rung = tuple(kernel or ()), bench_rung(pairs, processes)
    where = workspace_of(workspace)
    finish(run_bench(where, problem, files, settings.device, rung, not no_compile, seed, as_json, settings.ascii_only))


def profile(
    problem: ProblemName,
    kernel: Annotated[Path | None, typer.Option("--kernel", help="The kernel; default the problem's own")] = None,
    shape: Annotated[str | None, typer.Option("--shape", help="A timed shape; default the first")] = None,
    device: DeviceKey = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of inputs and choices")] = 0,
    workspace: Workspace = None,
    as_json: AsJson = False,
) -> None:
    """What bounds a kernel, and what to do about it. By its numbers, from Nsight Compute or without counters."""
    from kbtui.commands.profile import profile as run_profile

    settings = settings_of(workspace=workspace, device=device)
    finish(run_profile(workspace_of(workspace), problem, kernel, shape, settings.device, seed, as_json))
