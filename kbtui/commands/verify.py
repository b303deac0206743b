"""verify: run one kernel through the whole gate. Effects: a device."""

import json
from pathlib import Path

from kbtui.domain.codec import to_plain
from kbtui.domain.evaluation import EvaluationRequest
from kbtui.domain.measurement import LiveSample
from kbtui.domain.rung import CONFIRM, DEFAULT_LADDER, Rung
from kbtui.domain.verdict import Verdict, VerdictKind
from kbtui.engine.ports import Device
from kbtui.errors import ExitCode, UsageError

BISECT_SKIP = 125
EXITS = {
    VerdictKind.VERIFIED: ExitCode.DONE,
    VerdictKind.REJECTED: ExitCode.NOTHING_BETTER,
    VerdictKind.UNVERIFIED: ExitCode.NO_DEVICE,
}
#: Every stage of the gate on every shape, and nothing timed.
WHOLE_GATE = Rung(CONFIRM, "verify", gate_stage=4, max_pairs=0, process_pairs=0, profile=False, share=1.0)


def verify(workspace: Path, problem_name: str, kernel: Path | None, device_key: str, seed: int, as_json: bool) -> int:
    """Prints the verdict; 0 verified, 1 rejected, 3 unverified."""
    from kbtui.evaluation.devices import open_device
    from kbtui.kernel_file import check_kernel, read_kernel
    from kbtui.problems import load_problem
    from store.workspace import create_workspace

    problem = load_problem(problem_name)
    source = read_kernel(kernel) if kernel else problem.kernel_source
    if source is None:
        raise UsageError(f"{problem_name} brings no kernel", "name one: --kernel FILE")
    check_kernel(source, str(kernel or problem.path))
    device = open_device(device_key, create_workspace(workspace).root)
    try:
        device.open(problem)
        verdict = whole_gate(device, source, seed)
    finally:
        device.close()
    print_verdict(verdict, device.spec.name, as_json)
    return EXITS[verdict.kind]


def whole_gate(device: Device, source: str, seed: int) -> Verdict:
    """The verdict of compile, then of every later stage."""

    def gate(rung: Rung, passed_stage: int) -> Verdict:
        request = EvaluationRequest("kernel", source, rung, seed, passed_stage, None, None)
        return device.evaluate(request, _ignore).outcome.verdict

    compiled = gate(DEFAULT_LADDER[0], -1)
    return gate(WHOLE_GATE, 0) if compiled.ok else compiled


def _ignore(sample: LiveSample) -> None:
    """Nothing is timed here."""


def print_verdict(verdict: Verdict, device: str, as_json: bool) -> None:
    if as_json:
        plain = to_plain(verdict)
        plain["verdict"] = plain.pop("kind")
        print(json.dumps({**plain, "device": device}, indent=2))
        return
    at = f" (line {verdict.line})" if verdict.line else ""
    said = f"{verdict.reason}{at}: {verdict.detail}" if not verdict.ok else verdict.detail
    print(f"{verdict.kind} by {verdict.proof} on {device}: {said}")


def explain_policy(problem_name: str) -> ExitCode:
    """What a candidate of this problem may use, and why the rest is refused."""
    from kbtui.evaluation.policy import explain
    from kbtui.problems import load_problem

    print(explain(load_problem(problem_name).spec))
    return ExitCode.DONE
