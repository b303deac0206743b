"""verify: vet a problem, then run a kernel through the whole gate. Effects: a device."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbtui.commands.vetting_text import print_refusal, print_sound
from kbtui.domain.codec import to_plain
from kbtui.domain.evaluation import EvaluationRequest
from kbtui.domain.measurement import LiveSample
from kbtui.domain.problem import Problem, ProblemFormat
from kbtui.domain.rung import DEFAULT_LADDER, WHOLE_GATE, Rung
from kbtui.domain.verdict import Verdict, VerdictKind
from kbtui.domain.vetting import KERNELBENCH_ALLCLOSE, Vetting
from kbtui.engine.ports import Device
from kbtui.errors import ExitCode
from kbtui.room import need_room

BISECT_SKIP = 125
EXITS = {
    VerdictKind.VERIFIED: ExitCode.DONE,
    VerdictKind.REJECTED: ExitCode.NOTHING_BETTER,
    VerdictKind.UNVERIFIED: ExitCode.NO_DEVICE,
}


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks of ``verify``. ``allclose``: vet by it in place of the problem's own tolerance."""

    workspace: Path
    problem: str
    kernel: Path | None
    device: str
    seed: int
    as_json: bool
    explain: bool = False
    allclose: float | None = None


def verify(asked: Asked) -> int:
    """Prints what vetting finds and the verdict; 0 sound and verified, 1 rejected, 2 refused, 3 unverified."""
    from kbtui.engine.replaying import problem_on
    from kbtui.evaluation.devices import open_device
    from kbtui.kernel_file import with_kernel
    from kbtui.problems import load_problem
    from store.workspace import create_workspace

    problem = with_kernel(load_problem(asked.problem), asked.kernel)
    need_room(asked.workspace)
    root = create_workspace(asked.workspace).root
    device = open_device(asked.device, root)
    try:
        return _on(device, problem_on(device, problem, asked.kernel), root, asked)
    finally:
        device.close()


def _on(device: Device, problem: Problem, root: Path, asked: Asked) -> ExitCode:
    from kbtui.engine.vetted import vet_on

    vettings = [v for a in _criteria(problem, asked) if (v := vet_on(device, problem, root, a)) is not None]
    refused = [v for v in vettings if not v.sound]
    if refused or problem.kernel_source is None:
        return _told_of_problem(problem, vettings, asked)
    if not asked.as_json:
        for vetting in vettings:
            print_sound(vetting, asked.explain)
    device.open(problem)
    if asked.explain:
        from kbtui.commands.explain import explain_gate

        return explain_gate(device, problem, asked.seed, vettings, asked.as_json)
    verdict = whole_gate(device, problem.kernel_source, asked.seed)
    print_verdict(verdict, device.spec.name, asked.as_json, vettings)
    return EXITS[verdict.kind]


def _criteria(problem: Problem, asked: Asked) -> tuple[float | None, ...]:
    """By what to vet, None being the problem's own tolerance. A KernelBench file alone is looked at as its evaluator
    would, and as kbtui does."""
    if asked.allclose is not None:
        return (asked.allclose,)
    if problem.format is ProblemFormat.KERNELBENCH and Path(problem.path).is_file() and problem.kernel_source is None:
        return (KERNELBENCH_ALLCLOSE, None)
    return (None,)


def _told_of_problem(problem: Problem, vettings: list[Vetting], asked: Asked) -> ExitCode:
    """There is nothing to gate, or no gate to trust."""
    sound = all(v.sound for v in vettings)
    if asked.as_json:
        print(json.dumps(problem_json(vettings), indent=2))
    else:
        for vetting in vettings:
            if vetting.sound:
                print_sound(vetting, asked.explain)
            else:
                print_refusal(vetting, problem, asked.explain)
        if len(vettings) > 1 and vettings[-1].sound:
            print("kbtui run judges by the latter")
        if sound:
            print(f"{problem.spec.name} brings no kernel to verify; name one: --kernel FILE")
    return ExitCode.DONE if sound else ExitCode.USAGE


def problem_json(vettings: list[Vetting]) -> dict[str, Any]:
    """``verdict`` is ``sound`` or ``refused``; the reason is the first flaw."""
    first = next((v.complaints[0] for v in vettings if v.complaints), None)
    return {
        "verdict": "refused" if first else "sound",
        "reason": first.flaw.value if first else "ok",
        "detail": str(first) if first else "; ".join(v.headline for v in vettings),
        "vetting": [to_plain(v) for v in vettings],
    }


def whole_gate(device: Device, source: str, seed: int) -> Verdict:
    """The verdict of compile, then of every later stage."""
    compiled = gate(device, source, seed, DEFAULT_LADDER[0], -1)
    return gate(device, source, seed, WHOLE_GATE, 0) if compiled.ok else compiled


def gate(device: Device, source: str, seed: int, rung: Rung, passed_stage: int) -> Verdict:
    """The verdict of one rung's stage of the gate; nothing is timed."""
    request = EvaluationRequest("kernel", source, rung, seed, passed_stage, None, None)
    return device.evaluate(request, _ignore).outcome.verdict


def _ignore(sample: LiveSample) -> None:
    """Nothing is timed here."""


def print_verdict(verdict: Verdict, device: str, as_json: bool, vettings: list[Vetting]) -> None:
    if as_json:
        print(json.dumps(verdict_json(verdict, device, vettings), indent=2))
        return
    print(verdict_line(verdict, device))


def verdict_json(verdict: Verdict, device: str, vettings: list[Vetting]) -> dict[str, Any]:
    plain: dict[str, Any] = to_plain(verdict)
    plain["verdict"] = plain.pop("kind")
    return {**plain, "device": device, "vetting": [to_plain(v) for v in vettings]}


def verdict_line(verdict: Verdict, device: str) -> str:
    """``rejected by interpreter on A100: wrong_values: ...``; what no stage has run was read, not run."""
    at = f" (line {verdict.line})" if verdict.line else ""
    said = f"{verdict.reason}{at}: {verdict.detail}" if not verdict.ok else verdict.detail
    by = "before it ran" if verdict.proof == "none" else f"by {verdict.proof}"
    return f"{verdict.kind} {by} on {device}: {said}"
