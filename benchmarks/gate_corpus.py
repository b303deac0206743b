"""Runs the gate over kernels that cheat (tests/exploits) and honest ones (tests/exploits/honest, the playbook's).

``python benchmarks/gate_corpus.py [--device model:a100|cuda:0|interpreter] [--only GLOB,GLOB] [--policy on|off|both]
[--whole] --out FILE``. With the static policy off an exploit has to be caught when it runs. Every exploit must earn one
of its reasons and every honest kernel must pass; a line is printed for each that does not, then a summary. Exit status
1 if there was any. ``interpreter`` runs the first stage alone, without a compile. Effects: processes, files.
"""

import argparse
import contextlib
import fnmatch
import importlib.metadata
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[1]))

from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.evaluation import EvaluationRequest
from kbtui.domain.problem import Problem, ProblemSpec
from kbtui.domain.rung import COMPILE, CONFIRM, DEFAULT_LADDER, MEASURE, SCREEN, Rung
from kbtui.domain.verdict import Proof, Reason, Verdict, VerdictKind, verified
from kbtui.evaluation.gate.interpreter import InterpreterGate
from kbtui.evaluation.policy import check_policy
from kbtui.evaluation.process import Zygote
from kbtui.generation.playbook import load_entries
from kbtui.generation.rewrites import REWRITES, Target
from kbtui.problems import load_problem

EXPLOITS = Path(__file__).parents[1] / "tests" / "exploits"
HONEST = EXPLOITS / "honest"
PROBLEMS = ("softmax", "rms_norm", "mat_vec", "linear_relu_div", "group_conv", "sdp_attn")
PASSES = "passes"
#: Stage 1 of the gate with nothing timed.
FIRST_STAGE = replace(DEFAULT_LADDER[SCREEN], max_pairs=0)
CUDA_TIMEOUT_S = 2.0
_AHEAD = 12
_N_POINTS, _N_REWRITES = 1, 5
_PRECISION = ("exp2", "tf32", "reciprocals")
_HEADER = re.compile(r"^# ([a-z ]+): (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Sample:
    """One kernel of a corpus.

    Attributes:
        policy: the reason the static policy gives, or ``passes``.
        runtime: the reasons it may earn where the policy is off; empty for an honest kernel.
        cuda_only: the cheat needs a GPU; elsewhere it may do no harm.
        may_not_fit: drawn from a playbook's grid without regard to the chip, which may then refuse its tiles.
        first_stage: whether the first stage of the gate sees it; else the compile or a later stage does.
    """

    name: str
    problem: str
    source: str
    policy: str = PASSES
    runtime: tuple[str, ...] = ()
    cuda_only: bool = False
    first_stage: bool = True
    caught_by: str = ""
    may_not_fit: bool = False

    @property
    def honest(self) -> bool:
        return not self.runtime

    def expected(self, policy_on: bool) -> tuple[str, ...]:
        if self.honest:
            return (Reason.OK.value, Reason.OUT_OF_RESOURCES.value) if self.may_not_fit else (Reason.OK.value,)
        return (self.policy,) if policy_on and self.policy != PASSES else self.runtime


@dataclass(frozen=True, slots=True)
class Finding:
    """What the gate said of one sample in one mode. ``right``: as its file says, or None where it needs a GPU."""

    name: str
    problem: str
    honest: bool
    policy_on: bool
    kind: str
    reason: str
    stage: int
    detail: str
    wall_s: float
    right: bool | None


def exploits() -> tuple[Sample, ...]:
    return tuple(_read(path) for path in sorted(EXPLOITS.glob("*.py")))


def honest() -> tuple[Sample, ...]:
    """Written by hand, the problems' first kernels, every structure of the playbook, some rewrites."""
    written = [_read(path) for path in sorted(HONEST.glob("*.py"))]
    return (*written, *_generated())


def _read(path: Path) -> Sample:
    """A file below the problem's first kernel, whose entry point is called ``honest`` there."""
    text = path.read_text()
    header = dict(_HEADER.findall(text))
    problem = header["problem"]
    base = "" if header.get("base") == "none" else _base(problem)
    runtime = tuple(r.strip() for r in header.get("runtime", "").split(",") if r.strip())
    return Sample(
        path.stem, problem, base + text, header.get("policy", PASSES), runtime,
        header.get("on") == "cuda", header.get("first stage") != "no", header.get("caught by", ""),
    )  # fmt: skip


def _base(problem: str) -> str:
    source = load_problem(problem).kernel_source or ""
    return source.replace("def kernel_function(", "def honest(") + "\n\n"


def _generated() -> Iterator[Sample]:
    for problem in PROBLEMS:
        loaded, chip = load_problem(problem), DATA_SHEETS["a100"]
        first = loaded.kernel_source or ""
        yield Sample(f"{problem}-first", problem, first)
        for entry in load_entries(loaded.spec.family):
            rng = random.Random(f"{problem}/{entry.name}")
            points = [
                entry.defaults(), *({n: rng.choice(v) for n, v in entry.grid} for _ in range(_N_POINTS)),
            ]  # fmt: skip
            for i, point in enumerate(points):
                text = entry.instantiate(point, chip, loaded.spec)
                yield Sample(f"{problem}-{entry.name}-{i}", problem, text, may_not_fit=i > 0)
        edits = [e for r in REWRITES for e in r.apply(first, Target.of(chip, loaded.spec))]
        fair = [e for e in edits if not any(word in e.summary for word in _PRECISION)]
        for i, edit in enumerate(random.Random(problem).sample(fair, min(_N_REWRITES, len(fair)))):
            yield Sample(f"{problem}-rewrite-{i}", problem, edit.source)


@contextlib.contextmanager
def static_policy(on: bool) -> Iterator[None]:
    """With it off, every device takes any source for one within the policy. For this process only."""
    if on:
        yield
        return

    def all_fair(source: str, spec: ProblemSpec) -> Verdict:
        del source, spec
        return verified(0, Proof.NONE, "not looked at")

    users = [m for name, m in tuple(sys.modules.items()) if name.startswith("kbtui.")]
    with contextlib.ExitStack() as stack:
        for module in users:
            if vars(module).get("check_policy") is check_policy:
                stack.enter_context(mock.patch.object(module, "check_policy", all_fair))
        yield


class DeviceUnderTest:
    """One device; ``verdict`` runs rungs until the sample is caught, or has passed all that are to be run.

    ``whole``: honest kernels go through every stage and are timed too, as a champion is.
    """

    def __init__(self, key: str, root: Path, *, whole: bool = False) -> None:
        self.is_cuda, self._whole = key.startswith("cuda"), whole
        if self.is_cuda:
            from kbtui.evaluation.devices.cuda import CudaDevice

            self._device: Any = CudaDevice(key, root, call_timeout_s=CUDA_TIMEOUT_S)
        else:
            from kbtui.evaluation.devices import open_device

            self._device = open_device(key, root)

    @property
    def chip(self) -> dict[str, Any]:
        return asdict(self._device.spec)

    def open(self, problem: Problem) -> None:
        self._device.open(problem)

    def ahead(self, samples: Sequence[Sample]) -> None:
        for sample in samples:
            self._device.prefetch(sample.source)

    def verdict(self, sample: Sample) -> Verdict:
        passed, verdict = -1, verified(0, Proof.NONE)
        for rung in self._rungs(sample):
            request = EvaluationRequest(sample.name, sample.source, rung, 0, passed, None, None)
            verdict = self._device.evaluate(request, lambda _: None).outcome.verdict
            if not verdict.ok:
                break
            passed = max(passed, rung.gate_stage)
        return verdict

    def close(self) -> None:
        self._device.close()

    def _rungs(self, sample: Sample) -> tuple[Rung, ...]:
        """An exploit that passes the first stage gets all others, and is timed where something can be timed."""
        if sample.honest and not self._whole:
            return (DEFAULT_LADDER[COMPILE], FIRST_STAGE)
        later = tuple(DEFAULT_LADDER[i] for i in (SCREEN, MEASURE, CONFIRM))
        if not self.is_cuda:
            later = tuple(replace(r, max_pairs=0) for r in later[1:])
        return (DEFAULT_LADDER[COMPILE], FIRST_STAGE, *later)


class InterpreterUnderTest:
    """The gate's first stage alone."""

    is_cuda = False
    chip: Mapping[str, Any] = {}

    def __init__(self, root: Path) -> None:
        self._zygote = Zygote(root / "interpreter.log", interpret=True)
        self._gate: InterpreterGate | None = None

    def open(self, problem: Problem) -> None:
        self._close_gate()
        self._gate = InterpreterGate(self._zygote, problem, call_timeout_s=15.0)
        self._gate.open()

    def ahead(self, samples: Sequence[Sample]) -> None: ...

    def verdict(self, sample: Sample) -> Verdict:
        assert self._gate is not None
        return self._gate.check(sample.source, 1, seed=0)

    def close(self) -> None:
        self._close_gate()
        self._zygote.close()

    def _close_gate(self) -> None:
        if self._gate is not None:
            self._gate.close()
            self._gate = None


Under = DeviceUnderTest | InterpreterUnderTest


def under_test(key: str, root: Path, whole: bool = False) -> Under:
    return InterpreterUnderTest(root) if key == "interpreter" else DeviceUnderTest(key, root, whole=whole)


def judge(sample: Sample, verdict: Verdict, policy_on: bool, is_cuda: bool, wall_s: float = 0.0) -> Finding:
    return Finding(
        sample.name, sample.problem, sample.honest, policy_on, verdict.kind.value, verdict.reason.value,
        verdict.stage, verdict.detail, round(wall_s, 3), _right(sample, verdict, policy_on, is_cuda),
    )  # fmt: skip


def _right(sample: Sample, verdict: Verdict, policy_on: bool, is_cuda: bool) -> bool | None:
    by_policy = policy_on and sample.policy != PASSES
    if sample.cuda_only and not is_cuda and not by_policy:
        return None
    if verdict.kind is VerdictKind.UNVERIFIED and sample.honest:
        # The interpreter's limits are no rejection.
        return None if verdict.reason is Reason.INTERPRETER_UNSUPPORTED else False
    return verdict.reason.value in sample.expected(policy_on)


def run(
    under: Under, samples: Sequence[Sample], modes: Sequence[bool], tell: Callable[[Finding], None]
) -> Iterator[Finding]:
    """Every sample with the static policy on, off or both (``modes``), one problem after the other."""
    for problem in PROBLEMS:
        mine = [s for s in samples if s.problem == problem]
        for finding in _run_problem(under, load_problem(problem), mine, modes):
            tell(finding)
            yield finding


def _run_problem(under: Under, problem: Problem, samples: Sequence[Sample], modes: Sequence[bool]) -> Iterator[Finding]:
    if True in modes:
        for sample in samples:
            if sample.policy != PASSES:
                yield judge(sample, check_policy(sample.source, problem.spec), True, under.is_cuda)
    # What the policy says nothing of runs alike with it and without it: once is enough.
    jobs = [(s, True) for s in samples if s.policy == PASSES and True in modes]
    jobs += [(s, False) for s in samples if False in modes and (s.policy != PASSES or True not in modes)]
    if jobs:
        under.open(problem)
        yield from _run_jobs(under, jobs)


def _run_jobs(under: Under, jobs: Sequence[tuple[Sample, bool]]) -> Iterator[Finding]:
    for i, (sample, policy_on) in enumerate(jobs):
        for ahead, its_policy in jobs[i + 1 if i else 0 : i + 1 + _AHEAD]:
            with static_policy(its_policy):
                under.ahead((ahead,))
        began = time.monotonic()
        with static_policy(policy_on):
            verdict = under.verdict(sample)
        yield judge(sample, verdict, policy_on, under.is_cuda, time.monotonic() - began)


def summary(findings: Sequence[Finding]) -> dict[str, int]:
    cheats = [f for f in findings if not f.honest]
    by_policy = {f.name for f in cheats if f.policy_on and f.reason.startswith("policy")}
    ran = [f for f in cheats if not (f.policy_on and f.name in by_policy)]
    return {
        "kinds": len({f.name for f in cheats}),
        "caught_by_policy": len(by_policy),
        "caught_when_run": sum(f.kind == "rejected" for f in ran),
        "passed_when_run": sum(f.kind == "verified" for f in ran),
        "need_a_gpu": sum(f.right is None for f in ran),
        "honest": len({f.name for f in findings if f.honest}),
        "false_rejections": sum(f.honest and f.kind == "rejected" and not f.right for f in findings),
        "unverified": sum(f.kind == "unverified" for f in findings),
        "mismatches": sum(f.right is False for f in findings),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="model:a100")
    parser.add_argument("--only", default="*", help="names to run, globs with commas between them")
    parser.add_argument("--policy", choices=("on", "off", "both"), default="both")
    parser.add_argument("--corpus", choices=("exploits", "honest", "both"), default="both")
    parser.add_argument("--whole", action="store_true", help="honest kernels through every stage, timed as champions")
    parser.add_argument("--verbose", action="store_true", help="a line for each, not only for mismatches")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    wanted = {"exploits": exploits, "honest": honest}
    names = wanted if options.corpus == "both" else (options.corpus,)
    samples = [s for name in names for s in wanted[name]() if _wanted(s.name, options.only)]
    began = time.monotonic()

    def tell(finding: Finding) -> None:
        if options.verbose or finding.right is False:
            print(_line(finding), flush=True)

    modes = {"on": (True,), "off": (False,), "both": (True, False)}[options.policy]
    with tempfile.TemporaryDirectory(prefix="kbtui-corpus-") as root:
        under = under_test(options.device, Path(root), options.whole)
        try:
            chip = dict(under.chip)
            findings = list(run(under, samples, modes, tell))
        finally:
            under.close()
    return _report(options, chip, findings, time.monotonic() - began)


def _wanted(name: str, globs: str) -> bool:
    return any(fnmatch.fnmatch(name, glob.strip()) for glob in globs.split(","))


def _report(options: argparse.Namespace, chip: Mapping[str, Any], findings: Sequence[Finding], wall_s: float) -> int:
    counted = summary(findings)
    print(", ".join(f"{name.replace('_', ' ')} {n}" for name, n in counted.items()), f"in {wall_s:.0f} s")
    if options.out:
        versions = {name: importlib.metadata.version(name) for name in ("torch", "triton")}
        told = {
            "command": "python " + " ".join(sys.argv), "device": options.device, "date": datetime.now(UTC).isoformat(),
            "chip": chip, "versions": versions, "wall_s": round(wall_s, 1), "summary": counted,
            "findings": [asdict(f) for f in findings],
        }  # fmt: skip
        options.out.write_text(json.dumps(told, indent=1) + "\n")
    return 1 if counted["mismatches"] else 0


def _line(finding: Finding) -> str:
    mark = {True: "ok  ", False: "FAIL", None: "gpu "}[finding.right]
    mode = "policy on " if finding.policy_on else "policy off"
    told = f"{finding.kind} {finding.reason} at stage {finding.stage}: {finding.detail[:150]}"
    return f"{mark} {finding.wall_s:5.1f} s {mode} {finding.name}: {told}"


if __name__ == "__main__":
    raise SystemExit(main())
