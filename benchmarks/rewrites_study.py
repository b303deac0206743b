"""Every rewrite on kernels of many styles: how often it applies, whether the code changes, whether it stays right.

``python benchmarks/rewrites_study.py [--out FILE] [--sample N] [--seed 0] [--seconds S] [--per-rewrite 1]``
The kernels are the samples' first ones, the playbook's defaults and those of tests/data/kernels, written in the styles
of public Triton libraries. For every application: is it within the policy; does Triton's intermediate code (TTIR for
sm_80, after its own passes) differ; is the answer, under the interpreter on the problem's odd proxy shape, as near the
float64 oracle as the gate asks. An autotuned kernel is compiled in all its configurations, as it would be to time them,
and interpreted in its first. ``--sample`` takes a seeded few. Effects: starts three children, writes FILE (JSON).
"""

import argparse
import contextlib
import importlib.util
import json
import math
import os
import platform
import random
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.problem import Problem, Shape, ShapeRole
from kbtui.evaluation.policy import check_policy
from kbtui.generation.playbook import load_entries
from kbtui.generation.rewrites import REWRITES, Edit, Rewrite, Target
from kbtui.problems import load_problem

ROOT = Path(__file__).parents[1]
SAMPLES = ("softmax", "rms_norm", "mat_vec", "linear_relu_div", "sdp_attn", "group_conv")
STYLES = ROOT / "tests" / "data" / "kernels"
FLOORS = {"float32": 1e-6, "float16": 1e-3, "bfloat16": 8e-3}
A100 = DATA_SHEETS["a100"]
Row = dict[str, Any]


# -- in a child: torch and triton -------------------------------------------------------------------------------------


@cache
def module_of(source: str, name: str) -> Any:
    path = Path(tempfile.mkdtemp(prefix="rewrites-study-")) / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def inputs_of(job: Row, device: str) -> tuple[Any, tuple[Any, ...]]:
    import torch

    reference = module_of((Path(job["problem"]) / "reference.py").read_text(), "reference")
    generator = torch.Generator("cpu").manual_seed(5) if device == "cpu" else None
    made = reference.make_inputs(job["dims"], generator, device, "normal", dtype=job["dtype"])
    return reference.reference, made


def interpreted(job: Row) -> Row:
    """The answer's relative L2 error over what is allowed, and the largest element's over the gate's bound."""
    reference, inputs = inputs_of(job, "cpu")
    oracle = reference(*(x.double() for x in inputs))
    own = ((reference(*inputs).double() - oracle).norm() / oracle.norm()).item()
    out = module_of(job["source"], "kernel").kernel_function(*inputs)
    error = ((out.double() - oracle).norm() / oracle.norm()).item()
    same = out.shape == oracle.shape and out.dtype == inputs[0].dtype and math.isfinite(error)
    return {"error_over_allowed": error / max(FLOORS[job["dtype"]], 2 * own) if same else 1e9}


def choose_without_timing(every: bool) -> None:
    """Make an autotuned kernel run in each configuration, or in its first, with nothing timed."""
    from triton.runtime.autotuner import Autotuner

    def run(self: Any, *args: Any, **kwargs: Any) -> None:
        for config in self.configs if every else self.configs[:1]:
            self.fn.run(*args, **kwargs, **config.all_kwargs())

    Autotuner.run = run


class AbsentDriver:
    """Answers what Triton asks of a driver before a launch, for an A100 that is not there."""

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 80, 32)

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cpu")

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, _: Any = None) -> int:
        return 0


def stop_at_ttir(found: list[str]) -> None:
    """Make Triton compile to its first intermediate code only, and keep that of every launch."""
    import triton
    from triton.backends.nvidia.compiler import CUDABackend

    triton.runtime.driver.set_active(AbsentDriver())
    make = CUDABackend.make_ttir

    class Kept(Exception):  # noqa: N818 - it is no error
        pass

    def keep(mod: Any, *args: Any) -> Any:
        found.append(str(make(mod, *args)))
        raise Kept

    CUDABackend.make_ttir = staticmethod(keep)
    run = triton.runtime.jit.JITFunction.run

    def only_compile(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> None:
        try:
            run(self, *args, grid=grid, warmup=True, **options)
        except Kept:
            # Options of the launch are no part of the code.
            found.append(repr(sorted((k, v) for k, v in options.items() if k in _OPTIONS)))

    triton.runtime.jit.JITFunction.run = only_compile


_OPTIONS = ("num_warps", "num_stages", "maxnreg", "num_ctas")


def ttir_of(job: Row, found: list[str]) -> Row:
    """TTIR and options of every launch on the first timed shape, with the lines of the source left out."""
    found.clear()
    _, inputs = inputs_of({**job, "dims": job["timed_dims"], "dtype": job["timed_dtype"]}, "meta")
    module_of(job["source"], "kernel").kernel_function(*inputs)
    if not found:
        return {"failed": "nothing was launched"}
    return {"ttir": "\n".join(line.split(" loc(")[0] for text in found for line in text.splitlines()
                              if not line.startswith("#loc"))}  # fmt: skip


def child(kind: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    found: list[str] = []
    choose_without_timing(every=kind == "ttir")
    if kind == "ttir":
        stop_at_ttir(found)
    else:
        from kbtui.evaluation.compile.interpreted import skip_overflow_checks

        skip_overflow_checks()
    for line in sys.stdin:
        job = json.loads(line)
        try:
            answer = interpreted(job) if kind == "interpret" else ttir_of(job, found)
        except Exception as error:  # the application's failure, whatever it is
            answer = {"failed": f"{type(error).__name__}: {str(error)[-300:]}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


# -- in the parent ----------------------------------------------------------------------------------------------------


class Child:
    def __init__(self, kind: str) -> None:
        environment = {**os.environ, "TRITON_INTERPRET": "1" if kind == "interpret" else "0", "PYTHONPATH": str(ROOT)}
        environment["TRITON_CACHE_DIR"] = tempfile.mkdtemp(prefix="rewrites-study-cache-")
        command = [sys.executable, "-W", "ignore", __file__, "--child", kind]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def do(self, job: Row) -> Row:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        answer: Row = json.loads(self.process.stdout.readline())
        return answer

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def kernels() -> list[tuple[str, Problem, str]]:
    """(name, problem, source) of the samples' first kernels, the playbook's defaults and the other styles."""
    found = []
    for name in SAMPLES:
        problem = load_problem(name)
        if problem.kernel_source:
            found.append((f"samples/{name}", problem, problem.kernel_source))
        for entry in load_entries(problem.spec.family):
            found.append((f"playbook/{entry.name}", problem, entry.instantiate(entry.defaults(), A100, problem.spec)))
    for name, of in tomllib.loads((STYLES / "kernels.toml").read_text()).items():
        problem = load_problem(str(STYLES / of) if "/" in of else of)
        found.append((f"styles/{name}", problem, (STYLES / f"{name}.py").read_text()))
    return found


def job_of(problem: Problem, source: str, timed: Shape | None = None) -> Row:
    spec = problem.spec
    odd, timed = _odd(spec.shapes_of(ShapeRole.PROXY)), timed or spec.shapes_of(ShapeRole.TUNE)[0]
    return {"problem": str(problem.path), "source": source, "dims": odd.as_dict(), "dtype": spec.dtype_of(odd),
            "timed_dims": timed.as_dict(), "timed_dtype": spec.dtype_of(timed)}  # fmt: skip


def _told_apart(problem: Problem) -> tuple[Shape, ...]:
    """All timed and hidden shapes; those first on which most edits show: first and last timed, largest hidden."""
    timed, hidden = problem.spec.shapes_of(ShapeRole.TUNE), problem.spec.shapes_of(ShapeRole.HIDDEN)
    largest = max(hidden, key=lambda shape: max(size for _, size in shape.dims), default=timed[0])
    return tuple({shape.name: shape for shape in (timed[0], timed[-1], largest, *timed, *hidden)}.values())


def _odd(proxies: tuple[Shape, ...]) -> Shape:
    return proxies[min(1, len(proxies) - 1)]


def applications(per_rewrite: int, seed: int, until: float) -> Iterator[Row]:
    """Applications in a seeded order, every rewrite on a kernel in turn, so that a part of them is a fair sample."""
    rng = random.Random(seed)
    known = kernels()
    columns = [(rewrite, iter(rng.sample(known, k=len(known)))) for rewrite in REWRITES]
    while columns:
        for rewrite, left in tuple(columns):
            made = next(_applied(rewrite, left, per_rewrite), ()) if time.monotonic() < until else ()
            yield from made
            if not made:
                columns.remove((rewrite, left))


def _applied(rewrite: Rewrite, left: Iterator[tuple[str, Problem, str]], per_rewrite: int) -> Iterator[list[Row]]:
    """The rewrite on each kernel left that it applies to."""
    for name, problem, source in left:
        edits = islice(rewrite.each(source, Target.of(A100, problem.spec)), per_rewrite)
        if rows := [_row(name, problem, source, rewrite, edit) for edit in edits]:
            yield rows


def _row(name: str, problem: Problem, source: str, rewrite: Rewrite, edit: Edit) -> Row:
    verdict = check_policy(edit.source, problem.spec)
    return {"kernel": name, "rewrite": rewrite.name, "edit": edit.summary, "before": source, "problem": problem,
            "source": edit.source, "policy": "" if verdict.ok else verdict.detail}  # fmt: skip


def study(rows: Iterator[Row], until: float) -> list[Row]:
    """Fills in ``answer``, ``changed`` and ``compiled`` as applications come; what is left at ``until`` lacks them."""
    studied: list[Row] = []
    to_run: SimpleQueue[Row | None] = SimpleQueue()
    to_compile: SimpleQueue[Row | None] = SimpleQueue()
    befores: dict[tuple[str, str], Row] = {}

    def compiled(row: Row, compiler: Child) -> None:
        row["changed"], row["compiled"] = False, ""
        # A kernel for wide rows, say, is launched on some shapes only.
        for shape in _told_apart(row["problem"]):
            key = (row["before"], shape.name)
            if key not in befores:
                befores[key] = compiler.do(job_of(row["problem"], row["before"], shape))
            before, after = befores[key], compiler.do(job_of(row["problem"], row["source"], shape))
            row["compiled"] = before.get("failed") or after.get("failed") or ""
            row["changed"] = "ttir" in before and "ttir" in after and before["ttir"] != after["ttir"]
            if row["changed"]:
                return

    def run(row: Row, interpreter: Child) -> None:
        row["answer"] = interpreter.do(job_of(row["problem"], row["source"]))

    def lane(kind: str, waiting: SimpleQueue[Row | None], do: Callable[[Row, Child], None]) -> None:
        with contextlib.closing(Child(kind)) as worker:
            while (row := waiting.get()) is not None:
                if time.monotonic() < until:
                    do(row, worker)

    lanes = [threading.Thread(target=lane, args=("ttir", to_compile, compiled))]
    lanes += [threading.Thread(target=lane, args=("interpret", to_run, run)) for _ in range(2)]
    for thread in lanes:
        thread.start()
    for row in rows:
        studied.append(row)
        to_run.put(row)
        to_compile.put(row)
    for waiting in (to_run, to_run, to_compile):
        waiting.put(None)
    for thread in lanes:
        thread.join()
    return studied


def right(row: Row) -> bool:
    return not row["policy"] and row["answer"].get("error_over_allowed", 1e9) <= 1.0


def table(rows: list[Row]) -> dict[str, Row]:
    """By rewrite: kernels it applies to, applications compiled and changed, run and right."""
    found = {}
    for rewrite in REWRITES:
        mine = [r for r in rows if r["rewrite"] == rewrite.name]
        ran, compiled = [r for r in mine if "answer" in r], [r for r in mine if "changed" in r]
        found[rewrite.name] = {"kernels": len({r["kernel"] for r in mine}), "applications": len(mine),
                               "compiled": len(compiled), "changed": sum(r["changed"] for r in compiled),
                               "ran": len(ran), "right": sum(map(right, ran))}  # fmt: skip
    return found


def faults(rows: list[Row]) -> list[str]:
    told = []
    for row in rows:
        where = f"{row['rewrite']} on {row['kernel']} ({row['edit']})"
        if row["policy"]:
            told.append(f"{where}: outside the policy: {row['policy']}")
        if "answer" in row and not right(row):
            told.append(f"{where}: {row['answer']}")
        if "changed" in row and not row["changed"]:
            told.append(f"{where}: the compiled code is the same {row['compiled']}")
    return told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--sample", type=int, default=0, help="applications to study, 0 for all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=7200.0)
    parser.add_argument("--per-rewrite", type=int, default=1, help="applications of a rewrite to a kernel")
    given = parser.parse_args()
    if given.child:
        child(given.child)
        return 0
    began = time.monotonic()
    until = began + given.seconds
    rows = applications(given.per_rewrite, given.seed, until)
    chosen = study(islice(rows, given.sample) if given.sample else rows, until)
    found = table(chosen)
    ran = [r for r in chosen if "answer" in r]
    compiled = [r for r in chosen if "changed" in r]
    told = faults(chosen)
    result = {
        "command": f"python benchmarks/rewrites_study.py {' '.join(sys.argv[1:])}",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "date": time.strftime("%Y-%m-%d %H:%MZ", time.gmtime()), "seconds": round(time.monotonic() - began),
        "kernels": len(kernels()), "applications": len(chosen), "ran": len(ran), "right": sum(map(right, ran)),
        "compiled": len(compiled), "changed": sum(r["changed"] for r in compiled), "rewrites": found, "faults": told,
    }  # fmt: skip
    if given.out:
        given.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps({k: v for k, v in result.items() if k != "rewrites"}, indent=1))
    print("\n".join(f"{name:18} {row}" for name, row in found.items()))
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
