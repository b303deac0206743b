"""Many candidates in a row, one in five hostile or broken: every verdict right, nothing left behind.

``python benchmarks/endurance.py --device cuda:0 --candidates 300 --seed 0 --deadline 2 --out FILE`` (or ``model:a100``,
which needs no GPU). Candidates go through rungs 0 and 1 as the engine sends them, the next ones compiled ahead. What is
known of each (honest, hangs, crashes, floods ...) is held against its verdict; memory of host and GPU, descriptors,
processes and files below the workspace are taken before and after. Exit status 1 where a verdict or the end is wrong.
"""

import argparse
import json
import os
import platform
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from kbtui.cores import cores
from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.evaluation import EvaluationRequest
from kbtui.domain.problem import Problem, ProblemFormat, ProblemSpec, Shape, ShapeRole, Tolerance
from kbtui.domain.rung import COMPILE, DEFAULT_LADDER, SCREEN
from kbtui.domain.verdict import Verdict
from kbtui.engine.ports import Device
from kbtui.evaluation.devices.cuda import CudaDevice
from kbtui.evaluation.devices.model import ModelDevice
from kbtui.evaluation.nvml import parent_of

#: Compiled ahead: a child that hangs there is killed before its turn comes, where there are cores for the others.
AHEAD = 24 if cores() > 4 else 6
ONE_IN = 5
#: Importing and compiling take a candidate's child this many deadlines: it starts a compiler.
COMPILE_DEADLINES = 2 if cores() > 4 else 4
REFERENCE = """
import torch


def reference(x):
    return torch.softmax(x, dim=-1)


def make_inputs(shape, generator, device, distribution, dtype="float32"):
    x = torch.randn((shape["rows"], shape["cols"]), generator=generator, device=device)
    return (x * 30 if distribution == "wide" else x + 100 if distribution == "offset" else x,)
"""
KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_row(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < n_cols
    x = tl.load(x_ptr + row * n_cols + columns, mask=inside, other=float("-inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n_cols + columns, e / tl.sum(e, axis=0), mask=inside)


def launch(x, out):
    block = triton.next_power_of_2(x.shape[1])
    softmax_row[(x.shape[0],)](x, out, x.shape[1], BLOCK=block, num_warps=WARPS)
    return out

"""
SPIN = """
@triton.jit
def spin(flag_ptr):
    while tl.atomic_add(flag_ptr, 0) == 0:
        pass

"""


def entry(body: str, before: str = "", kernel: str = KERNEL) -> str:
    indented = "".join(f"    {line}\n" for line in body.strip().splitlines())
    return f"{kernel.replace('WARPS', '4')}\n{before}\n\ndef kernel_function(x):\n{indented}"


PLAIN = "return launch(x, torch.empty_like(x))"
HONEST = {
    **{f"plain, {w} warps": entry(PLAIN, kernel=KERNEL.replace("WARPS", str(w))) for w in (1, 2, 4, 8)},
    "through a workspace": entry(
        "middle = torch.empty_like(x)\nmiddle.copy_(x)\nreturn launch(middle, torch.empty_like(x))"),
    "twice": entry("launch(x, torch.empty_like(x))\nreturn launch(x, torch.empty_like(x))"),
}  # fmt: skip

#: Name, source, reasons it may earn.
HOSTILE: dict[str, tuple[str, frozenset[str]]] = {
    name: (source, frozenset(reasons.split()))
    for name, source, reasons in (
        ("loops on the host", entry("while True:\n    pass"), "timed_out"),
        ("loops while imported", entry(PLAIN, "while True:\n    pass"), "timed_out"),
        ("loops on the device", entry(
            f"spin[(1,)](torch.zeros(1, dtype=torch.int32, device=x.device))\n{PLAIN}", SPIN), "timed_out"),
        ("writes out of bounds", entry(PLAIN, kernel=KERNEL.replace(
            "out_ptr + row * n_cols", "out_ptr + (row + 1) * 274877906944")), "crashed"),
        ("takes the host's memory", entry("hog = []\nwhile True:\n    hog.append(b'x' * (1 << 28))"),
         "out_of_memory timed_out"),
        ("takes the device's memory", entry(
            f"for _ in range(2000):\n    kept.append(torch.empty(1 << 28, device=x.device))\n{PLAIN}", "kept = []"),
         "out_of_memory timed_out"),
        ("floods its output", entry("while True:\n    print('x' * 100000)"), "raised crashed timed_out"),
        ("calls itself for ever", entry("return kernel_function(x)"), "raised crashed"),
        ("leaves", entry("raise SystemExit(0)"), "crashed raised"),
        ("interrupts", entry("raise KeyboardInterrupt"), "crashed raised"),
        ("raises", entry("raise ValueError('not today')"), "raised"),
        ("imports what it may not", entry(PLAIN, "import os"), "policy_import"),
        ("is cut off", entry(PLAIN)[:-20], "syntax"),
        ("does not compile", entry(PLAIN, kernel=KERNEL.replace("tl.arange(0, BLOCK)", "tl.arange(0, 3 * BLOCK)")),
         "compile_error"),
        ("answers zeros", entry("launch(x, torch.empty_like(x))\nreturn torch.zeros_like(x)"),
         "wrong_values kernels_do_nothing"),
        ("keeps the maximum", entry(PLAIN, kernel=KERNEL.replace("x - tl.max(x, axis=0)", "x")),
         "nan_mismatch wrong_values"),
        ("overwrites its input", entry("out = launch(x, torch.empty_like(x))\nx.zero_()\nreturn out"),
         "input_modified policy_write policy_name forbidden_op"),
        ("lets torch compute", entry("launch(x, torch.empty_like(x))\nreturn torch.softmax(x, -1)"), "policy_name"),
    )
}  # fmt: skip


def problem_of(rows: int, cols: int) -> Problem:
    """A softmax whose checks take little time: what is tried here are the processes around it.

    Under the interpreter a call costs some milliseconds a row, so there are few.
    """
    shapes = (
        Shape(f"{rows}x{cols}", (("rows", rows), ("cols", cols))),
        Shape("1x7", (("rows", 1), ("cols", 7)), ShapeRole.HIDDEN),
        Shape("2x65", (("rows", 2), ("cols", 65)), ShapeRole.HIDDEN),
        Shape("2x64", (("rows", 2), ("cols", 64)), ShapeRole.PROXY),
    )
    spec = ProblemSpec(
        "softmax", "", "float32", "row_softmax", shapes, ("normal", "wide", "offset"),
        "2 * rows * cols * itemsize", "5 * rows * cols", Tolerance(1e-6),
    )  # fmt: skip
    return Problem(spec, ProblemFormat.FOLDER, "/nonexistent/softmax", REFERENCE, None)


@dataclass(frozen=True)
class Held:
    """What engine, zygotes and their children hold. ``gpu_mib`` is None without one."""

    descriptors: int
    processes: int
    resident_mib: int
    files: int
    disk_mib: float
    gpu_mib: int | None

    def over(self, before: "Held", n_candidates: int) -> list[str]:
        """What grew beyond what a report a candidate and allocators' slack explain."""
        told = []
        for name, slack in (("descriptors", 0), ("processes", 0), ("files", 0), ("disk_mib", 1.0), ("gpu_mib", 64),
                            ("resident_mib", 30 + n_candidates // 10)):  # fmt: skip
            mine, theirs = getattr(self, name), getattr(before, name)
            if mine is not None and mine > theirs + slack:
                told.append(f"{name} {theirs} -> {mine}")
        return told


@dataclass(frozen=True)
class Given:
    """One candidate: what it is known to be, and what it may earn (nothing: it must be verified)."""

    kind: str
    source: str
    reasons: frozenset[str]


def candidates(n: int, seed: int) -> list[Given]:
    """One in five hostile, every kind as often as the others, in an order that the seed makes."""
    rng = random.Random(seed)
    kinds = list(HOSTILE)
    order: list[str] = []
    while len(order) < n // ONE_IN + 1:
        rng.shuffle(kinds)
        order += kinds
    given = []
    for number in range(n):
        mark = f"\n# candidate {number} of seed {seed}\n"
        if number % ONE_IN == ONE_IN - 1:
            kind = order[number // ONE_IN]
            source, reasons = HOSTILE[kind]
            given.append(Given(kind, source + (mark if kind != "is cut off" else f"  # {number}"), reasons))
        else:
            kind = rng.choice(list(HONEST))
            given.append(Given(kind, HONEST[kind] + mark, frozenset()))
    return given


def evaluate(device: Device, number: int, source: str) -> Verdict:
    for rung in (COMPILE, SCREEN):
        request = EvaluationRequest(f"c{number:04d}", source, DEFAULT_LADDER[rung], 0, rung - 1, None, None)
        verdict = device.evaluate(request, lambda _: None).outcome.verdict
        if not verdict.ok:
            break
    return verdict


def held(root: Path, gpu_used_mib: Callable[[], int | None]) -> Held:
    pids = [int(p) for p in os.listdir("/proc") if p.isdigit()]
    zygotes = {p for p in pids if parent_of(p) == os.getpid()}
    children = [p for p in pids if parent_of(p) in zygotes]
    files = [Path(folder, name) for folder, _, names in os.walk(root / "scratch") for name in names]
    resident = sum(int(Path(f"/proc/{p}/statm").read_text().split()[1]) for p in (os.getpid(), *zygotes))
    return Held(
        sum(len(os.listdir(f"/proc/{p}/fd")) for p in (os.getpid(), *zygotes)),
        len(zygotes) + len(children),
        resident * os.sysconf("SC_PAGE_SIZE") >> 20,
        len(files),
        round(sum(size_of(f) for f in files) / 1e6, 1),
        gpu_used_mib(),
    )


def size_of(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def settled(take: Callable[[], Held], timeout_s: float = 30.0) -> Held:
    """What is held once it has not changed for a second: spares come and go."""
    deadline, last, since = time.monotonic() + timeout_s, take(), time.monotonic()
    while time.monotonic() - since < 1.0 and time.monotonic() < deadline:
        time.sleep(0.1)
        now = take()
        if (now.processes, now.descriptors, now.files) != (last.processes, last.descriptors, last.files):
            last, since = now, time.monotonic()
    return last


def gpu_reader(device: Device) -> Callable[[], int | None]:
    if device.spec.uuid is None:
        return lambda: None
    import pynvml

    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByUUID(device.spec.uuid.encode())
    return lambda: int(pynvml.nvmlDeviceGetMemoryInfo(handle).used) >> 20


def open_device(key: str, root: Path, deadline_s: float) -> tuple[Device, Problem]:
    compile_s = COMPILE_DEADLINES * deadline_s
    if key.startswith("model:"):
        chip = DATA_SHEETS[key.removeprefix("model:")]
        modelled = ModelDevice(chip, root, call_timeout_s=deadline_s, compile_timeout_s=compile_s)
        return modelled, problem_of(4, 128)
    measured = CudaDevice(key, root, call_timeout_s=deadline_s, compile_timeout_s=compile_s)
    return measured, problem_of(2048, 4096)


def endure(
    device: Device, root: Path, given: list[Given], say: Callable[[str], None], at_most_s: float = 1e6
) -> dict[str, Any]:
    """Evaluate them all, or as many as ``at_most_s`` lets, and take stock; as JSON."""
    used = gpu_reader(device)
    for number in range(3):
        verdict = evaluate(device, number, HONEST["plain, 4 warps"] + f"\n# warm {number}\n")
        assert verdict.ok, verdict
    before = settled(lambda: held(root, used))
    began, told = time.monotonic(), Counter[str]()
    wrong: list[dict[str, Any]] = []
    taken: dict[bool, list[float]] = {True: [], False: []}
    for number, candidate in enumerate(given):
        if time.monotonic() - began > at_most_s:
            break
        for ahead in given[number : number + AHEAD]:
            device.prefetch(ahead.source)
        at = time.monotonic()
        verdict = evaluate(device, number, candidate.source)
        taken[not candidate.reasons].append(time.monotonic() - at)
        told[f"{candidate.kind}: {verdict.reason or verdict.kind}"] += 1
        right = verdict.reason in candidate.reasons if candidate.reasons else verdict.ok
        if not right:
            wrong.append({"number": number, "kind": candidate.kind, "verdict": str(verdict)[:300]})
            say(f"WRONG {number} {candidate.kind}: {verdict}")
        if number % 50 == 49:
            say(f"{number + 1} candidates in {time.monotonic() - began:.0f} s, {len(wrong)} wrong; {held(root, used)}")
    wall_s = time.monotonic() - began
    after = settled(lambda: held(root, used))
    return {
        "candidates": told.total(),
        "hostile": len(taken[False]),
        "wall_s": round(wall_s, 1),
        "honest_median_s": round(statistics.median(taken[True]), 3),
        "hostile_median_s": round(statistics.median(taken[False]), 3),
        "wrong": wrong,
        "left": after.over(before, len(given)),
        "before": asdict(before),
        "after": asdict(after),
        "verdicts": dict(sorted(told.items())),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--device", default="model:a100")
    parser.add_argument("--candidates", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--deadline", type=float, default=2.0, help="seconds one call of a candidate may take")
    parser.add_argument("--at-most", type=float, default=1e6, help="seconds after which no other is evaluated")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kbtui-endurance-") as folder:
        root = Path(folder)
        device, problem = open_device(options.device, root, options.deadline)
        try:
            device.open(problem)
            given = candidates(options.candidates, options.seed)
            found = endure(device, root, given, lambda t: print(t, flush=True), options.at_most)
        finally:
            device.close()
    about = {
        "command": f"python benchmarks/endurance.py {' '.join(sys.argv[1:])}",
        "date": time.strftime("%Y-%m-%d"),
        "device": device.spec.name,
        "machine": f"{os.cpu_count()} cores, Linux {platform.release()}, Python {platform.python_version()}",
    }
    print(json.dumps({k: v for k, v in found.items() if k != "verdicts"}, indent=1))
    if options.out:
        options.out.write_text(json.dumps(about | found, indent=1) + "\n")
    return 1 if found["wrong"] or found["left"] else 0


if __name__ == "__main__":
    sys.exit(main())
