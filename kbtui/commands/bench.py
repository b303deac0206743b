"""bench: time kernels beside PyTorch, without a search. Effects: a device, stdout."""

import json
from pathlib import Path

from rich.console import Console

from kbtui.benching.result import Benched, BenchReport, samples_of
from kbtui.benching.table import plain, render
from kbtui.commands.verify import EXITS, whole_gate
from kbtui.console import tell
from kbtui.domain.evaluation import EvaluationRequest, Opponent
from kbtui.domain.measurement import LiveSample
from kbtui.domain.rung import CONFIRM, Rung
from kbtui.engine.ports import Device
from kbtui.errors import UsageError
from kbtui.room import need_room

FIRST = "first"


def bench(
    workspace: Path, problem_name: str, kernels: tuple[Path, ...], device_key: str, rung: Rung, with_compile: bool,
    seed: int, as_json: bool, ascii_only: bool,
) -> int:  # fmt: skip
    """Prints times and ratios. 0, or 1 where the gate rejected a kernel, 3 where it could not be verified."""
    from kbtui.engine.replaying import problem_on
    from kbtui.evaluation.devices import open_device
    from kbtui.kernel_file import read_kernel
    from kbtui.problems import load_problem
    from store.workspace import create_workspace

    problem = load_problem(problem_name)
    named = {name: read_kernel(path) for path, name in zip(kernels, _names(kernels), strict=True)}
    if not named and problem.kernel_source is None:
        raise UsageError(f"{problem_name} brings no kernel", "name one: --kernel FILE")
    baselines = ("eager", "compile") if with_compile else ("eager",)
    need_room(workspace)
    device = open_device(device_key, create_workspace(workspace).root, baselines=baselines)
    try:
        problem = problem_on(device, problem)
        sources = {FIRST: problem.kernel_source, **named} if problem.kernel_source else named
        tell(f"opening {problem.spec.name} on {device.spec.name}")
        opened = device.open(problem)
        benched = _benched(device, sources, rung, seed)
    finally:
        device.close()
    report = BenchReport(problem.spec, device.spec, opened.baselines, benched)
    _print(report, as_json, ascii_only)
    return _exit_code(report)


def bench_rung(n_pairs: int, n_processes: int) -> Rung:
    """All shapes the gate knows are checked, those the problem times are timed, in fresh processes."""
    return Rung(CONFIRM, "bench", 4, max_pairs=n_pairs, process_pairs=n_processes, profile=False, share=1.0)


def _benched(device: Device, sources: dict[str, str], rung: Rung, seed: int) -> tuple[Benched, ...]:
    """The problem's own kernel first: the others are compared with it, if it is verified."""
    done: list[Benched] = []
    for name, source in sources.items():
        sound = bool(done) and done[0].name == FIRST and done[0].verdict.ok
        first = Opponent(FIRST, sources[FIRST]) if sound else None
        tell(f"gate and times of {name}")
        done.append(_one(device, name, source, first, rung, seed))
    return tuple(done)


def _one(device: Device, name: str, source: str, first: Opponent | None, rung: Rung, seed: int) -> Benched:
    verdict = whole_gate(device, source, seed)
    if not verdict.ok:
        return Benched(name, verdict)
    request = EvaluationRequest(name, source, rung, seed, rung.gate_stage, None, first)
    found = device.evaluate(request, _unwatched)
    taken = [samples_of(json.loads(a.content)) for a in found.attachments if a.name.startswith("samples-")]
    verdict = verdict if found.outcome.verdict.ok else found.outcome.verdict
    return Benched(name, verdict, found.outcome.measurement, taken[0] if taken else {})


def _unwatched(sample: LiveSample) -> None:
    """The table comes when all is measured."""


def _names(paths: tuple[Path, ...]) -> list[str]:
    """File names, or whole paths where two are alike."""
    stems = [p.stem for p in paths]
    return [stem if stems.count(stem) == 1 and stem != FIRST else str(p) for stem, p in zip(stems, paths, strict=True)]


def _print(report: BenchReport, as_json: bool, ascii_only: bool) -> None:
    if as_json:
        print(json.dumps(report.to_plain(), indent=2))
        return
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(render(report, console.width, ascii_only))
    else:
        print(plain(report, ascii_only))


def _exit_code(report: BenchReport) -> int:
    return max(int(EXITS[k.verdict.kind]) for k in report.kernels)
