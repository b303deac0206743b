"""What a worker does with one instantiation: hold it against an oracle, or time it. Effects: the GPU.

Torch and Triton are imported where they are used: the command, which only starts workers, needs neither.
"""

import importlib.util
import json
import math
import os
import statistics
import sys
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.playbook.rows import Row
from kbtui.domain.problem import ShapeRole
from kbtui.problems import load_problem

#: Inputs whose first dimension is the batch: the oracle takes a few of its items.
BATCHED = {"sdp_attn": (0, 1, 2)}
FLOORS = {"float32": 1e-6, "float16": 1e-3, "bfloat16": 8e-3}
N_SAMPLES, WARM_S = 20, 0.02


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


def relative_error(a: Any, oracle: Any) -> float:
    error = ((a.double() - oracle).norm() / oracle.norm()).item()
    return error if math.isfinite(error) else 1e9


def inputs_of(problem: str, shape: Any, seed: int = 1) -> tuple[Any, ...]:
    import torch

    generator = torch.Generator("cuda").manual_seed(seed)
    dtype = load_problem(problem).spec.dtype_of(shape)
    made: tuple[Any, ...] = reference_of(problem).make_inputs(shape.as_dict(), generator, "cuda", "normal", dtype=dtype)
    return made


def reference_of(problem: str) -> Any:
    return module_of(str(Path(load_problem(problem).path) / "reference.py"))


@cache
def module_of(path: str) -> Any:
    spec = importlib.util.spec_from_file_location(Path(path).stem.replace(".", "_"), path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def bench() -> Any:
    from kbtui.evaluation.roles.bench import Bench

    return Bench()
