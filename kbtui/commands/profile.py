"""profile: what bounds one kernel on one shape, and what to do about it. Effects: a device; writes ncu's report."""

import json
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kbtui.domain.candidate import Attachment, source_sha
from kbtui.domain.codec import to_plain
from kbtui.domain.evaluation import EvaluationRequest, RungOutcome
from kbtui.domain.measurement import LiveSample
from kbtui.domain.problem import Problem, ShapeRole
from kbtui.domain.proposal import Hint, Phase
from kbtui.domain.rung import DEFAULT_LADDER, PROFILE, Rung
from kbtui.engine.ports import Device
from kbtui.errors import ExitCode, UsageError
from kbtui.room import need_room

#: The gate on the shape, times of it alone, and ncu.
ONE_KERNEL = Rung(PROFILE, "profile", gate_stage=1, max_pairs=12, process_pairs=1, profile=True, share=1.0)
HINTS_SHOWN = 4
#: Longer lines are hard to read.
WIDEST = 100


@dataclass(frozen=True, slots=True)
class Profiled:
    """What was found, as it is printed. ``report`` is the file that Nsight Compute's own viewer opens.

    ``kernel`` is the file that was named, empty where it is the problem's own kernel.
    """

    problem: str
    shape: str
    device: str
    clock: str
    outcome: RungOutcome
    hints: tuple[Hint, ...]
    report: str | None
    kernel: str = ""


def profile(
    workspace: Path,
    problem_name: str,
    kernel: Path | None,
    shape: str | None,
    device_key: str,
    seed: int,
    as_json: bool,
) -> ExitCode:
    """Prints the diagnosis; 0, or 1 where the gate rejects the kernel, 3 where it cannot say."""
    from kbtui.commands.profile_text import render
    from kbtui.commands.verify import EXITS
    from kbtui.engine.replaying import problem_on
    from kbtui.evaluation.devices import open_device
    from kbtui.kernel_file import with_kernel
    from kbtui.problems import load_problem
    from store.workspace import create_workspace

    problem = with_kernel(load_problem(problem_name), kernel)
    if problem.kernel_source is None:
        raise UsageError(f"{problem_name} brings no kernel", "name one: --kernel FILE")
    need_room(workspace)
    root = create_workspace(workspace).root
    device = open_device(device_key, root)
    try:
        found = profiled(device, on_shape(problem_on(device, problem, kernel), shape), root, seed)
    finally:
        device.close()
    found = replace(found, kernel=str(kernel) if kernel else "")
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDEST
    print(json.dumps(plain(found), indent=2) if as_json else render(found, min(columns, WIDEST)))
    return EXITS[found.outcome.verdict.kind]


def on_shape(problem: Problem, name: str | None) -> Problem:
    """The problem with one of its shapes timed: the named one, else the one it screens on. Raises UsageError."""
    tuned = problem.spec.shapes_of(ShapeRole.TUNE)
    chosen = next((s for s in tuned if s.name == name), None) if name else problem.spec.timed_at(1)[0]
    if chosen is None:
        raise UsageError(f"no timed shape {name!r}", f"name one of {', '.join(s.name for s in tuned)}")
    others = tuple(s for s in problem.spec.shapes if s.role is not ShapeRole.TUNE)
    return replace(problem, spec=replace(problem.spec, shapes=(replace(chosen, from_rung=1), *others)))


def profiled(device: Device, problem: Problem, root: Path, seed: int) -> Profiled:
    """Gate, time and profile the problem's kernel on its one timed shape; the report goes below ``root``."""
    family = device.open(problem).family
    source = problem.kernel_source or ""
    shape = problem.spec.shapes_of(ShapeRole.TUNE)[0]
    compiled = _evaluated(device, source, DEFAULT_LADDER[0], seed, -1)[0]
    attached: tuple[Attachment, ...] = ()
    outcome = compiled
    if compiled.verdict.ok:
        outcome, attached = _evaluated(device, source, ONE_KERNEL, seed, 0)
    report = _kept(attached, root / "profiles", f"{problem.spec.name}-{source_sha(source)[:8]}")
    hints = _hints(outcome, family, device.spec.arch)
    return Profiled(problem.spec.name, shape.name, device.spec.name, device.spec.clock.value, outcome, hints, report)


def _evaluated(
    device: Device, source: str, rung: Rung, seed: int, passed_stage: int
) -> tuple[RungOutcome, tuple[Attachment, ...]]:
    request = EvaluationRequest("kernel", source, rung, seed, passed_stage, None, None)
    found = device.evaluate(request, _unwatched)
    return found.outcome, found.attachments


def _unwatched(sample: LiveSample) -> None:
    """Nobody looks on."""


def _hints(outcome: RungOutcome, family: str | None, arch: int) -> tuple[Hint, ...]:
    from hints import choose_hints, load_hints

    if outcome.diagnosis is None:
        return ()
    return choose_hints(load_hints(), family, outcome.diagnosis, Phase.COARSE, (), HINTS_SHOWN, arch)


def _kept(attached: tuple[Attachment, ...], folder: Path, prefix: str) -> str | None:
    """Writes ncu's report and page; the report's path."""
    kept = None
    for attachment in attached:
        if attachment.name.startswith("ncu-"):
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{prefix}-{attachment.name.removeprefix('ncu-')}"
            path.write_bytes(attachment.content)
            kept = str(path) if path.suffix == ".ncu-rep" else kept
    return kept


def plain(found: Profiled) -> dict[str, Any]:
    """As JSON: the outcome's parts by name."""
    outcome = found.outcome
    return {
        "problem": found.problem,
        "kernel": found.kernel or None,
        "shape": found.shape,
        "device": found.device,
        "clock": found.clock,
        "verdict": to_plain(outcome.verdict),
        "measurement": to_plain(outcome.measurement) if outcome.measurement else None,
        "diagnosis": to_plain(outcome.diagnosis) if outcome.diagnosis else None,
        "profile": to_plain(outcome.profile) if outcome.profile else None,
        "resources": to_plain(outcome.resources),
        "hints": to_plain(found.hints),
        "report": found.report,
    }
