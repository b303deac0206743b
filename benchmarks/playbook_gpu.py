"""Every playbook entry on a GPU: right on every shape of its problem, and its time beside PyTorch eager's.

Run from the repository's root on a machine with an NVIDIA GPU:
``python benchmarks/playbook_gpu.py --device cuda:0 --out FILE [--problems a,b] [--tiles 6] [--seconds 190]``.
Each entry runs at its defaults and at a seeded few of the tiles beside them, or at all combinations of the values that
``--points "ENTRY TILE=4096,8192 STAGES=1,2"`` names (more than once for more of them). Three steps, each within its
share of the seconds: (1) workers in parallel compile an instantiation and hold it against a float64 oracle on all
shapes, hidden ones too; (2) one worker times what passed by kbtui's loop, cold L2, to rank the tiles (``quick_us``);
(3) each entry's defaults and each problem's fastest go through the whole gate, as ``kbtui verify`` runs it, and who
passes is timed in turns with PyTorch eager in two pairs of fresh processes, as ``kbtui bench`` does (``times_us``).
Eager is timed nowhere else: in one long-lived process, and a CUDA graph, the same call took from 1.05 to 2.65 ms where
outputs were 1 GiB. A worker that hangs or dies is replaced and the instantiation says so. Effects: writes FILE (JSON),
starts processes.
"""

import argparse
import contextlib
import importlib.util
import itertools
import json
import math
import os
import platform
import queue
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from kbtui.commands.verify import whole_gate
from kbtui.domain.device import closest_data_sheet
from kbtui.domain.evaluation import EvaluationRequest
from kbtui.domain.measurement import Measurement
from kbtui.domain.problem import ShapeRole
from kbtui.domain.rung import CONFIRM, Rung
from kbtui.engine.ports import Device
from kbtui.evaluation.baselines import EAGER
from kbtui.evaluation.devices import open_device
from kbtui.generation.playbook import load_entries
from kbtui.generation.playbook.entry import Entry
from kbtui.problems import load_problem

PROBLEMS = ("linear_relu_div", "group_conv", "sdp_attn", "softmax", "rms_norm", "mat_vec")
#: Inputs whose first dimension is the batch: the oracle takes a few of its items.
BATCHED = {"sdp_attn": (0, 1, 2)}
FLOORS = {"float32": 1e-6, "float16": 1e-3, "bfloat16": 8e-3}
JOB_TIMEOUT_S = 60
N_SAMPLES, WARM_S = 20, 0.02
#: As kbtui bench times, but two pairs of processes are enough here.
BESIDE_EAGER = Rung(CONFIRM, "beside eager", gate_stage=4, max_pairs=6, process_pairs=2, profile=False, share=1.0)
Row = dict[str, Any]


# -- in a worker: torch, triton and the GPU ---------------------------------------------------------------------------


@cache
def module_of(path: str) -> Any:
    spec = importlib.util.spec_from_file_location(Path(path).stem.replace(".", "_"), path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def reference_of(problem: str) -> Any:
    return module_of(str(Path(load_problem(problem).path) / "reference.py"))


def inputs_of(problem: str, shape: Any, seed: int = 1) -> tuple[Any, ...]:
    import torch

    generator = torch.Generator("cuda").manual_seed(seed)
    dtype = load_problem(problem).spec.dtype_of(shape)
    made: tuple[Any, ...] = reference_of(problem).make_inputs(shape.as_dict(), generator, "cuda", "normal", dtype=dtype)
    return made


def relative_error(a: Any, oracle: Any) -> float:
    error = ((a.double() - oracle).norm() / oracle.norm()).item()
    return error if math.isfinite(error) else 1e9


def check(job: Row) -> Row:
    """The largest relative L2 error over what is allowed; the oracle takes a few items of the batch.

    Defaults run on all shapes, others on the timed ones and two hidden ones.
    """
    import torch

    kernel = module_of(job["path"]).kernel_function
    spec = load_problem(job["problem"]).spec
    worst, at = 0.0, ""
    hidden = spec.shapes_of(ShapeRole.HIDDEN)
    for shape in (*spec.shapes_of(ShapeRole.TUNE), *(hidden if job["number"] == 0 else hidden[-2:])):
        inputs = inputs_of(job["problem"], shape)
        some = sorted({0, inputs[0].shape[0] // 2, inputs[0].shape[0] - 1})
        batched = BATCHED.get(Path(job["problem"]).name, (0,))
        few = [x[some] if i in batched else x for i, x in enumerate(inputs)]
        reference = reference_of(job["problem"]).reference
        oracle = reference(*(x.double() for x in few))
        allowed = max(FLOORS[spec.dtype_of(shape)], 2 * relative_error(reference(*few), oracle))
        out = kernel(*inputs)
        whole = bool(torch.isfinite(out).all())
        over = relative_error(out[some], oracle) / allowed if whole and out.dtype == inputs[0].dtype else 1e9
        worst, at = max((worst, at), (over, shape.name))
        del inputs, out, oracle, few
    torch.cuda.empty_cache()
    return {"error_over_allowed": round(worst, 4), "worst_at": at}


@cache
def bench() -> Any:
    from kbtui.evaluation.roles.bench import Bench

    return Bench()


def timed(job: Row) -> Row:
    """Medians of the kernel's device time after the L2 was emptied, microseconds, on each timed shape."""
    kernel = module_of(job["path"]).kernel_function
    found = {}
    for shape in load_problem(job["problem"]).spec.shapes_of(ShapeRole.TUNE):
        inputs = inputs_of(job["problem"], shape, seed=2)

        def call(_: int, inputs: tuple[Any, ...] = inputs) -> Any:
            return kernel(*inputs)

        queue_s = bench().warm_up(call, WARM_S)
        found[shape.name] = round(statistics.median(bench().timed(call, N_SAMPLES, queue_s, -1, lambda _: None)), 2)
    return {"quick_us": found}


def work() -> None:
    """Jobs as JSON lines on stdin, answers on stdout. After a CUDA error it ends: the context is gone."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        job = json.loads(line)
        try:
            answer = {"check": check, "time": timed}[job["do"]](job)
        except Exception as error:  # the instantiation's failure, whatever it is
            answer = {"failed": f"{type(error).__name__}: {str(error)[:300]}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
        if "CUDA" in answer.get("failed", ""):
            return


# -- in the parent ----------------------------------------------------------------------------------------------------


class Worker:
    """A child that does jobs; one that hangs or dies is replaced at the next job."""

    def __init__(self, index: str) -> None:
        self.environment = {**os.environ, "CUDA_VISIBLE_DEVICES": index}
        self.child: subprocess.Popen[str] | None = None

    def do(self, job: Row, timeout_s: float = JOB_TIMEOUT_S) -> Row:
        if self.child is None or self.child.poll() is not None:
            command = [sys.executable, __file__, "--worker"]
            self.child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.environment
            )
        child = self.child
        assert child.stdin is not None
        assert child.stdout is not None
        timer = threading.Timer(timeout_s, child.kill)
        timer.start()
        try:
            child.stdin.write(json.dumps(job) + "\n")
            child.stdin.flush()
            line = child.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        answer: Row = json.loads(line) if line else {"failed": f"the process died or took over {timeout_s:.0f} s"}
        if "CUDA" in answer.get("failed", "") or not line:
            self.close()
        return answer

    def close(self) -> None:
        if self.child is not None:
            self.child.kill()
            self.child.wait()
            self.child = None


def instantiations(entry: Entry, n_tiles: int, seed: int) -> list[dict[str, Any]]:
    """The defaults, then points with one or two parameters elsewhere on the grid, seeded by the entry's name."""
    rng = random.Random(f"{seed}/{entry.name}")
    points = [entry.defaults()]
    while len(points) <= n_tiles:
        names = rng.sample([name for name, values in entry.grid if name != "PRECISION" and len(values) > 1], k=2)
        moved = {name: rng.choice(values) for name, values in entry.grid if name in names}
        point = entry.defaults() | moved
        if point not in points and entry.why_kept_out(point) is None:
            points.append(point)
    return points


def named_points(entry: Entry, asked: list[str]) -> list[dict[str, Any]]:
    """The defaults, then every combination of the values that ``--points`` names for this entry; [] if for none."""
    points = []
    for name, *choices in (text.split() for text in asked):
        if name == entry.name:
            values = {key: _values(entry, key, listed) for key, _, listed in (c.partition("=") for c in choices)}
            points += [dict(zip(values, point, strict=True)) for point in itertools.product(*values.values())]
    found = [entry.defaults()] if points else []
    for point in (entry.defaults() | moved for moved in points):
        if point not in found and entry.why_kept_out(point) is None:
            found.append(point)
    return found


def _values(entry: Entry, name: str, listed: str) -> list[Any]:
    """As the grid has them; a number that is not on the grid may be tried too."""
    on_grid = {str(value): value for value in dict(entry.grid)[name]}
    return [on_grid.get(text, int(text) if text.isdigit() else text) for text in listed.split(",")]


def all_rows(
    problems: list[str], n_tiles: int, chip: Any, folder: Path, only: list[str], asked: list[str]
) -> list[Row]:
    """Rows to fill, every entry's defaults first; each with its source in a file."""
    rows = []
    for problem in problems:
        spec = load_problem(problem).spec
        for entry in load_entries(spec.family):
            for number, params in enumerate(
                (named_points(entry, asked) or instantiations(entry, n_tiles, seed=0))
                if any(o in entry.name for o in only)
                else []
            ):
                path = folder / f"{entry.name}_{number}.py"
                path.write_text(entry.instantiate(params, chip, spec))
                rows.append({"problem": problem, "entry": entry.name, "number": number, "params": params,
                             "summary": entry.summarise(params), "path": str(path)})  # fmt: skip
    return sorted(rows, key=lambda row: row["number"])


def check_all(rows: list[Row], n_workers: int, index: str, until: float) -> None:
    waiting: queue.SimpleQueue[Row] = queue.SimpleQueue()
    for row in rows:
        waiting.put(row)

    def lane() -> None:
        worker = Worker(index)
        with contextlib.suppress(queue.Empty):
            while time.monotonic() < until:
                row = waiting.get_nowait()
                row.update(worker.do({**row, "do": "check"}, min(JOB_TIMEOUT_S, until + 10 - time.monotonic())))
        worker.close()

    lanes = [threading.Thread(target=lane) for _ in range(n_workers)]
    for thread in lanes:
        thread.start()
    for thread in lanes:
        thread.join()


def time_all(rows: list[Row], index: str, until: float) -> None:
    worker = Worker(index)
    for row in rows:
        if row.get("error_over_allowed", 1e9) <= 1.0 and time.monotonic() < until:
            row.update(worker.do({**row, "do": "time"}))
    worker.close()


def gate_all(rows: list[Row], device: str, until: float, save: Callable[[], None]) -> None:
    """The whole gate, then times beside eager, of the defaults and of each problem's fastest."""
    for problem in dict.fromkeys(row["problem"] for row in rows):
        mine = [row for row in rows if row["problem"] == problem]
        best = {id(fastest) for fastest in best_of(mine).values()}
        chosen = [row for row in mine if row["number"] == 0 or id(row) in best]
        with tempfile.TemporaryDirectory(prefix="playbook-gate-") as folder:
            opened = None
            try:
                opened = open_device(device, Path(folder))
                opened.open(load_problem(problem))
                for row in chosen:
                    if time.monotonic() < until:
                        gated(opened, row)
                        save()
            except Exception as error:  # a device that cannot be had: the rows say so
                for row in chosen:
                    row.setdefault("gate", f"unverified: {type(error).__name__}: {str(error)[:200]}")
            finally:
                if opened is not None:
                    opened.close()


def gated(device: Device, row: Row) -> None:
    began, source = time.monotonic(), Path(row["path"]).read_text()
    verdict = whole_gate(device, source, 0)
    row["gate"] = f"{verdict.kind} {verdict.reason or ''}: {verdict.detail}"
    row["gate_s"] = round(time.monotonic() - began, 1)
    if verdict.ok:
        request = EvaluationRequest(row["entry"], source, BESIDE_EAGER, 0, BESIDE_EAGER.gate_stage, None, None)
        outcome = device.evaluate(request, lambda _: None).outcome
        row["times_us"] = beside_eager(outcome.measurement)
        if outcome.measurement is None:
            row["gate"] = f"{outcome.verdict.kind} {outcome.verdict.reason} while timed: {outcome.verdict.detail}"
    print(f"{row['entry']} #{row['number']} in {row['gate_s']} s: {row['gate']} {row.get('times_us')}", flush=True)


def beside_eager(found: Measurement | None) -> dict[str, Row]:
    """By shape: the kernel's time, and how many times that eager took in the same turns, with the 95 % interval."""
    against = found.against(EAGER) if found is not None else None
    if found is None or against is None:
        return {}
    kernel_us = {timing.shape: timing.device_us for timing in found.timings}
    return {s.shape: {"kernel": round(kernel_us[s.shape], 2), "eager": round(kernel_us[s.shape] * s.ratio, 2),
                      "ratio": round(s.ratio, 3), "low": round(s.low, 3), "high": round(s.high, 3)}
            for s in against.shapes}  # fmt: skip


def best_of(rows: list[Row]) -> dict[str, Row]:
    """The row with the least quick time of each timed shape."""
    best: dict[str, Row] = {}
    for row in rows:
        for shape, us in row.get("quick_us", {}).items():
            if shape not in best or us < best[shape]["quick_us"][shape]:
                best[shape] = row
    return best


def printed(rows: list[Row]) -> Iterator[str]:
    for problem in dict.fromkeys(row["problem"] for row in rows):
        shapes: dict[str, list[Row]] = {}
        for row in rows:
            for shape in row.get("times_us", {}) if row["problem"] == problem else ():
                shapes.setdefault(shape, []).append(row)
        for shape, timed_rows in shapes.items():
            row = max(timed_rows, key=lambda r: r["times_us"][shape]["ratio"])
            us = row["times_us"][shape]
            told = f"{us['kernel']} us, eager {us['eager']} us"
            yield f"{problem} {shape}: {us['ratio']}x by {row['entry']} ({row['summary']}): {told}"
    for row in rows:
        if row["number"] == 0 or "failed" in row or row.get("error_over_allowed", 0.0) > 1.0:
            state = row.get("failed") or f"error {row.get('error_over_allowed')} of allowed"
            yield f"  {row['entry']} #{row['number']}: {state} {row.get('quick_us')} gate: {row.get('gate', 'not run')}"


def in_dtype(problem: str, dtype: str, folder: Path) -> str:
    """A copy of the problem's folder with every shape in this dtype."""
    found = load_problem(problem)
    made = folder / dtype / Path(found.path).name
    made.mkdir(parents=True)
    declared = (Path(found.path) / "problem.toml").read_text(encoding="utf-8")
    (made / "problem.toml").write_text(re.sub(r'(?<=\bdtype = )"\w+"', f'"{dtype}"', declared), encoding="utf-8")
    (made / "reference.py").write_text(found.reference_source, encoding="utf-8")
    return str(made)


def machine(index: str) -> dict[str, str]:
    query = ["nvidia-smi", f"--id={index}", "--format=csv,noheader",
             "--query-gpu=name,driver_version,clocks.sm,clocks.mem,power.limit"]  # fmt: skip
    said = subprocess.run(query, capture_output=True, text=True).stdout.strip()
    return {
        "gpu": said,
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--dtype", default="", help="all shapes in this one, in place of the problem's own")
    parser.add_argument("--only", default="", help="entries whose name contains one of these")
    parser.add_argument("--tiles", type=int, default=6, help="instantiations beside the defaults")
    parser.add_argument("--points", action="append", default=[], help="an entry and values, in place of its tiles")
    parser.add_argument("--workers", type=int, default=12, help="processes that compile and check")
    parser.add_argument("--seconds", type=float, default=190.0)
    given = parser.parse_args()
    if given.worker:
        return work()
    began = time.monotonic()
    index = given.device.split(":")[1]
    facts = machine(index)
    chip = closest_data_sheet(facts["gpu"].split(",")[0], 90)
    with tempfile.TemporaryDirectory(prefix="playbook-gpu-") as folder:
        os.environ.setdefault("TRITON_CACHE_DIR", f"{folder}/cache")
        problems = given.problems.split(",")
        if given.dtype:
            problems = [in_dtype(problem, given.dtype, Path(folder)) for problem in problems]
        rows = all_rows(problems, given.tiles, chip, Path(folder), given.only.split(","), given.points)

        def save() -> None:
            shown = [
                {k: v for k, v in row.items() if k != "path"} | {"problem": Path(row["problem"]).name} for row in rows
            ]
            command = f"python benchmarks/playbook_gpu.py {' '.join(sys.argv[1:])}"
            given.out.write_text(json.dumps({"command": command, "machine": facts, "rows": shown}, indent=1) + "\n")

        steps = [("checked", lambda: check_all(rows, given.workers, index, began + 0.4 * given.seconds)),
                 ("timed", lambda: time_all(rows, index, began + 0.65 * given.seconds)),
                 ("gated", lambda: gate_all(rows, given.device, began + given.seconds, save))]  # fmt: skip
        for name, step in steps:
            step()
            facts[name] = f"after {time.monotonic() - began:.0f} s"
            print(name, facts[name], flush=True)
            save()
    print("\n".join(printed(rows)))


if __name__ == "__main__":
    main()
