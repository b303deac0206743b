"""verify --explain: the policy and the gate as applied to one problem, and to one kernel. Effects: prints; a device."""

import json
from dataclasses import replace
from itertools import groupby
from typing import Any

from kbtui.commands.verify import EXITS, gate, verdict_json, verdict_line
from kbtui.domain.codec import to_plain
from kbtui.domain.measurement import Clock
from kbtui.domain.problem import Problem, ProblemSpec, ShapeRole
from kbtui.domain.rung import DEFAULT_LADDER, WHOLE_GATE
from kbtui.domain.verdict import Proof, Verdict
from kbtui.domain.vetting import Vetting
from kbtui.engine.ports import Device
from kbtui.errors import ExitCode
from kbtui.evaluation.gate.plan import Check, CheckKind, plan

STAGES = (1, 2, 4)
_STAGE_WORDS = {
    0: "policy, signature, compile",
    1: "before a candidate is timed at all",
    2: "before it is measured on every timed shape",
    4: "before it may be champion",
}
_KIND_WORDS = {
    "values": "against a float64 oracle; inputs' bytes, poisoned outputs, aliasing, the operations and kernels it ran",
    "repeat": "the same inputs again",
    "nudge": "a part of the inputs overwritten where they lie: a kept answer is wrong",
    "late": "the same after many calls that nobody watched, their number drawn anew",
    "no_op": "its kernels left out: the answer must go wrong",
    "aged": "new values of shapes it has met, once its process is seconds old: how many is drawn anew",
}


def explain_problem(name: str, device_key: str, as_json: bool) -> ExitCode:
    """Policy and plan for a problem on a device; nothing is run."""
    from kbtui.evaluation.devices import REPLAY, resolve_auto
    from kbtui.evaluation.policy import explain
    from kbtui.problems import load_problem

    problem = load_problem(name)
    key = resolve_auto() if device_key == "auto" else device_key
    proof = Proof.GPU if key.startswith(("cuda", REPLAY)) else Proof.INTERPRETER  # what is played back ran on a GPU
    if as_json:
        print(json.dumps({"policy": explain(problem.spec), **plan_json(problem.spec, proof)}, indent=2))
        return ExitCode.DONE
    print(explain(problem.spec))
    print(f"\nThe gate on {key}: proof {proof}")
    print_plan(problem.spec, proof)
    return ExitCode.DONE


def explain_gate(device: Device, problem: Problem, seed: int, vettings: list[Vetting], as_json: bool) -> ExitCode:
    """The kernel's findings with their lines, then each stage with what it checked, by which proof, and its verdict."""
    assert problem.kernel_source is not None
    proof = Proof.GPU if device.spec.clock is Clock.MEASURED else Proof.INTERPRETER
    findings = findings_of(problem)
    verdicts = stage_verdicts(device, problem.kernel_source, seed)
    last = verdicts[-1]
    if as_json:
        told = verdict_json(last, device.spec.name, vettings)
        stages = [to_plain(v) for v in verdicts]
        print(json.dumps({**told, "findings": findings, "stages": stages, **plan_json(problem.spec, proof)}, indent=2))
        return EXITS[last.kind]
    _print_findings(findings)
    print_plan(problem.spec, proof, dict(zip((0, *STAGES), verdicts, strict=False)))
    print(verdict_line(last, device.spec.name))
    return EXITS[last.kind]


def findings_of(problem: Problem) -> list[dict[str, Any]]:
    """Everything the static policy has against the kernel, by line."""
    import ast

    from kbtui.evaluation.policy import find_all
    from kbtui.evaluation.policy_source import without_main_block

    source = problem.kernel_source or ""
    tree = without_main_block(ast.parse(source), source)
    found = sorted(find_all(tree, problem.spec.allowed_ops), key=lambda f: (f.line, f.what))
    return [{"line": f.line, "reason": f.reason.value, "what": f.what, "do": f.do} for f in found]


def stage_verdicts(device: Device, source: str, seed: int) -> list[Verdict]:
    """Compile, then stage by stage until one does not pass."""
    verdicts = [gate(device, source, seed, DEFAULT_LADDER[0], -1)]
    passed = 0
    for stage in STAGES:
        if not verdicts[-1].ok:
            break
        verdicts.append(gate(device, source, seed, replace(WHOLE_GATE, gate_stage=stage), passed))
        passed = stage
    return verdicts


def _print_findings(findings: list[dict[str, Any]]) -> None:
    print(f"static policy: {len(findings) or 'no'} finding{'s' if len(findings) != 1 else ''}")
    for found in findings:
        print(f"  line {found['line']}: {found['what']}: {found['reason']}; {found['do']}")


def print_plan(spec: ProblemSpec, proof: Proof, verdicts: dict[int, Verdict] | None = None) -> None:
    """Stages in order. Under the interpreter proxies stand for the timed shapes."""
    print(f"tolerance     {tolerance_words(spec)}")
    said: set[str] = set()
    for stage in (0, *STAGES):
        print(f"stage {stage}       {_STAGE_WORDS[stage]}{_outcome(stage, verdicts)}")
        for kind, checks in groupby(plan(spec, stage, 0, proof), key=lambda c: c.kind):
            listed = list(checks)
            print(f"  {kind:<11} {_where(listed)}")
            if kind in _KIND_WORDS and kind not in said:
                print(f"              {_KIND_WORDS[kind]}")
                said.add(kind)
    skipped = hidden_left_out(spec, proof)
    if skipped:
        print(f"left out      hidden shapes too large for the interpreter: {', '.join(skipped)}")


def tolerance_words(spec: ProblemSpec) -> str:
    floor, element = spec.tolerance.floor, spec.tolerance.element
    whole = f"relative L2 error at most E = max({floor:g}, 2 x the reference's own)"
    return f"{whole}; of one element {element:g} x E x RMS"


def hidden_left_out(spec: ProblemSpec, proof: Proof) -> list[str]:
    planned = {c.shape.name for stage in STAGES for c in plan(spec, stage, 0, proof)}
    return [s.name for s in spec.shapes_of(ShapeRole.HIDDEN) if s.name not in planned]


def plan_json(spec: ProblemSpec, proof: Proof) -> dict[str, Any]:
    stages = {stage: [_check_json(c) for c in plan(spec, stage, 0, proof)] for stage in STAGES}
    tolerance = to_plain(spec.tolerance)
    return {"proof": proof.value, "tolerance": tolerance, "plan": stages, "left_out": hidden_left_out(spec, proof)}


def _check_json(check: Check) -> dict[str, str]:
    return {"kind": check.kind.value, "shape": check.shape.name, "distribution": check.distribution}


def _where(checks: list[Check]) -> str:
    by_shape: dict[str, list[str]] = {}
    for check in checks:
        by_shape.setdefault(check.shape.name, []).append(check.distribution)
    if checks[0].kind is not CheckKind.VALUES:
        return ", ".join(by_shape)
    return "; ".join(f"{shape} ({', '.join(dict.fromkeys(names))})" for shape, names in by_shape.items())


def _outcome(stage: int, verdicts: dict[int, Verdict] | None) -> str:
    if verdicts is None:
        return ""
    verdict = verdicts.get(stage)
    if verdict is None:
        return ": not reached"
    by = "" if verdict.proof is Proof.NONE else f" by {verdict.proof}"
    return f": {verdict.kind}{by}" + ("" if verdict.ok else f", {verdict.reason}")
