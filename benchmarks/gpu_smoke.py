"""One pass over everything the CUDA device does, on sample_kernels/softmax, with the sandbox on.

Run on a machine with an NVIDIA GPU, from the repository's root: ``python benchmarks/gpu_smoke.py [--device cuda:0]``.
Prints a line a step with its wall time; a step that fails prints why and the others go on. Exit status 1 if any did.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from kbtui.domain.evaluation import Evaluated, EvaluationRequest, Opponent
from kbtui.domain.measurement import LiveSample
from kbtui.domain.rung import DEFAULT_LADDER
from kbtui.evaluation.devices.cuda import CudaDevice
from kbtui.evaluation.nvml import parent_of
from kbtui.problems import load_problem

IMPROVED = """
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_one_pass(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < n_cols
    x = tl.load(x_ptr + row * n_cols + columns, mask=inside, other=float("-inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n_cols + columns, e / tl.sum(e, axis=0), mask=inside)


def kernel_function(x):
    out = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    softmax_one_pass[(x.shape[0],)](x, out, x.shape[1], BLOCK=block, num_warps=WARPS if block > 2048 else 4)
    return out
"""
HANG = """
import torch
import triton
import triton.language as tl


@triton.jit
def spin(x_ptr, out_ptr, flag_ptr, n, BLOCK: tl.constexpr):
    while tl.atomic_add(flag_ptr, 0) == 0:
        pass
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def kernel_function(x):
    out = torch.empty_like(x)
    flag = torch.zeros(1, dtype=torch.int32, device=x.device)
    spin[(triton.cdiv(x.numel(), 1024),)](x, out, flag, x.numel(), BLOCK=1024)
    return out
"""
ONE_PASS = IMPROVED.replace("WARPS", "16")
CRASH = ONE_PASS.replace("tl.store(out_ptr + row * n_cols", "tl.store(out_ptr + (row + 1) * 274877906944")
WRONG = ONE_PASS.replace("x - tl.max(x, axis=0)", "x")
FORBIDDEN = ONE_PASS.replace("    return out", "    return torch.nn.functional.softmax(x, -1)")


class Smoke:
    def __init__(self, device: CudaDevice) -> None:
        self.device = device
        self.failed = 0
        self.n_live = 0

    def step(self, name: str, action: Callable[[], str]) -> None:
        began = time.perf_counter()
        try:
            told, mark = action(), "ok  "
        except Exception:
            self.failed += 1
            told, mark = traceback.format_exc(limit=6), "FAIL"
        print(f"{mark} {time.perf_counter() - began:7.2f} s  {name}: {told}", flush=True)

    def evaluate(
        self, name: str, source: str, rung: int, incumbent: tuple[str, str] | None, first: tuple[str, str] | None,
        passed: int,
    ) -> Evaluated:  # fmt: skip
        request = EvaluationRequest(
            name, source, DEFAULT_LADDER[rung], 0, passed,
            Opponent(*incumbent) if incumbent else None, Opponent(*first) if first else None,
        )  # fmt: skip
        return self.device.evaluate(request, self._live)

    def rungs(self, name: str, source: str, rival: tuple[str, str] | None) -> None:
        """All five rungs, each a step."""
        passed = -1
        for rung, stage in enumerate((0, 1, 2, 2, 4)):

            def one(rung: int = rung, passed: int = passed) -> str:
                found = self.evaluate(name, source, rung, rival, rival, passed)
                assert found.outcome.verdict.ok, found.outcome.verdict
                return describe(found)

            self.step(f"{name} rung {rung}", one)
            passed = stage

    def rejected(self, name: str, source: str, reason: str) -> None:
        def one() -> str:
            verdict = self.evaluate(name, source, 0, None, None, -1).outcome.verdict
            if verdict.ok:
                verdict = self.evaluate(name, source, 1, None, None, 0).outcome.verdict
            assert verdict.reason == reason, verdict
            return f"{verdict.kind} {verdict.reason} at stage {verdict.stage}: {verdict.detail}"

        self.step(name, one)

    def screening(self, n: int, rival: tuple[str, str]) -> str:
        """Wall time a candidate through rungs 0 and 1, compiled ahead as the engine does."""
        sources = [IMPROVED.replace("WARPS", "16") + f"\n# {i}\n" for i in range(n)]
        for source in sources[:3]:
            self.device.prefetch(source)
        taken = []
        for i, source in enumerate(sources):
            for ahead in sources[i + 1 : i + 4]:
                self.device.prefetch(ahead)
            began = time.perf_counter()
            compiled = self.evaluate(f"s{i}", source, 0, rival, None, -1)
            middle = time.perf_counter()
            screened = self.evaluate(f"s{i}", source, 1, rival, None, 0)
            assert compiled.outcome.verdict.ok, compiled.outcome.verdict
            assert screened.outcome.verdict.ok, screened.outcome.verdict
            taken.append((middle - began, time.perf_counter() - middle, screened.outcome.gpu_s))
        rung0, rung1, gpu = (statistics.median(column) for column in zip(*taken, strict=True))
        return f"{n} candidates, median rung 0 {rung0:.2f} s, rung 1 {rung1:.2f} s (GPU held {gpu:.2f} s)"

    def same_kernel(self, n: int) -> str:
        """A kernel against itself under another name: how often it is called faster, and the spread of its ratio."""
        source = ONE_PASS
        ratios, outcomes = [], []
        for i in range(n):
            found = self.evaluate(f"aa{i}", f"{source}\n# {i}\n", 2, ("c0001", source), None, 1)
            assert found.outcome.measurement is not None, found.outcome.verdict
            comparison = found.outcome.measurement.comparisons[0]
            ratios.append(comparison.ratio)
            outcomes.append(comparison.outcome.value)
        spread = (max(ratios) - min(ratios)) * 100
        return f"{outcomes.count('faster')} of {n} called faster, ratios spread {spread:.2f} %, outcomes {outcomes}"

    def _live(self, sample: LiveSample) -> None:
        self.n_live += 1


def describe(found: Evaluated) -> str:
    outcome = found.outcome
    parts = [f"{outcome.verdict.kind} ({outcome.verdict.detail}) gpu {outcome.gpu_s:.2f} s"]
    if outcome.verdict.error is not None:
        parts.append(f"error {outcome.verdict.error:.1e}")
    if outcome.measurement:
        parts += [
            f"{t.shape} {t.device_us:.1f} us ({t.low_us:.1f}-{t.high_us:.1f}, n {t.n_samples})"
            + (f" end to end {t.end_to_end_us:.1f}" if t.end_to_end_us else "")
            for t in outcome.measurement.timings
        ]
        parts += [
            f"vs {c.against} {c.outcome} {c.ratio:.3f} ({c.low:.3f}-{c.high:.3f}) {c.n_pairs}/{c.n_processes}"
            for c in outcome.measurement.comparisons
        ]
        if outcome.measurement.unstable:
            parts.append(f"UNSTABLE {outcome.measurement.unstable}")
    if outcome.profile:
        parts.append(outcome.profile.not_profiled or f"{len(outcome.profile.metrics)} counters")
    if outcome.diagnosis:
        parts.append(outcome.diagnosis.sentence)
    return "\n                 ".join(parts)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--problem", default="sample_kernels/softmax")
    parser.add_argument("--screen", type=int, default=12, help="candidates in the throughput step")
    parser.add_argument("--same", type=int, default=8, help="comparisons of a kernel with itself")
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="kbtui-smoke-"))
    began = time.perf_counter()
    device = CudaDevice(options.device, root, call_timeout_s=4.0)
    print(f"ok   {time.perf_counter() - began:7.2f} s  device: {device.spec}", flush=True)
    smoke = Smoke(device)
    try:
        run(smoke, options)
    finally:
        device.close()
    print(
        f"{'FAIL' if smoke.failed else 'ok  '} {smoke.failed} steps failed, {smoke.n_live} live samples, logs in {root}"
    )
    if smoke.failed:
        print((root / "scratch" / "zygote.log").read_text()[-3000:])
    return 1 if smoke.failed else 0


def run(smoke: Smoke, options: argparse.Namespace) -> None:
    problem = load_problem(options.problem)
    first = problem.kernel_source or ""

    def opened() -> str:
        report = smoke.device.open(replace(problem))
        told = [f"family {report.family}, sandbox missing: {report.sandbox or 'nothing'}"]
        for baseline in report.baselines:
            times = baseline.measurement.timings if baseline.measurement else ()
            told.append(f"{baseline.name}: {[(t.shape, round(t.device_us, 1)) for t in times] or baseline.error}")
        return "\n                 ".join(told)

    smoke.step("open", opened)
    smoke.rungs("c0001", first, None)
    if options.problem.rstrip("/").endswith("softmax"):
        smoke.rungs("c0002", ONE_PASS, ("c0001", first))
        smoke.rejected("wrong", WRONG, "nan_mismatch")
        smoke.rejected("forbidden", FORBIDDEN, "policy_name")
        smoke.rejected("crash", CRASH, "crashed")
        smoke.rejected("hang", HANG, "timed_out")
        smoke.step(
            "after crash and hang", lambda: describe(smoke.evaluate("c0003", ONE_PASS + "\n#", 1, None, None, 0))
        )
        smoke.step("screening", lambda: smoke.screening(options.screen, ("c0001", first)))
        smoke.step("same kernel", lambda: smoke.same_kernel(options.same))
    zygote = smoke.device._zygote.pid
    children = [p for p in os.listdir("/proc") if p.isdigit() and parent_of(int(p)) == zygote]
    smoke.step("processes", lambda: f"{len(children)} children of the zygote (spares, referee, incumbents)")


if __name__ == "__main__":
    raise SystemExit(main())
