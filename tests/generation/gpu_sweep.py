"""Times playbook instantiations on a GPU against PyTorch eager, and checks them on every shape. Prints JSON lines.

usage: gpu_sweep.py OUT_FILE SECONDS [steps] (with ``steps``: every parameter one step from its default too)

Times are of CUDA graphs of one call after an L2 flush of their own, so that a slow host does not count.
"""

import json
import random
import sys
import time

import torch
from kernel_child import load_module, reference_of

from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.problem import ShapeRole
from kbtui.generation.playbook.entry import load_entries
from kbtui.generation.playbook.propose import _adjacent
from kbtui.problems import load_problem

PROBLEMS = {"softmax": "row_softmax", "rms_norm": "channel_rms_norm", "mat_vec": "mat_vec"}
FLUSH = torch.empty(64 << 20, dtype=torch.int32, device="cuda")


def inputs_for(problem, shape):
    generator = torch.Generator(device="cuda").manual_seed(1)
    return reference_of(problem).make_inputs(shape.as_dict(), generator, "cuda", "normal", dtype="float32")


def worst_error(kernel, problem, shapes) -> float:
    worst = 0.0
    for shape in shapes:
        inputs = inputs_for(problem, shape)
        oracle = reference_of(problem).reference(*(x.double() for x in inputs))
        worst = max(worst, ((kernel(*inputs).double() - oracle).norm() / oracle.norm()).item())
    return worst


def median_us(call, inputs, n: int = 25) -> float:
    call(*inputs)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = call(*inputs)
    times = []
    for _ in range(n):
        FLUSH.sum()
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        times.append((start, end))
    torch.cuda.synchronize()
    del kept
    return sorted(start.elapsed_time(end) * 1e3 for start, end in times)[n // 2]


def main(out: str, seconds: float, steps: bool) -> None:
    started = time.time()
    work = []
    for problem, family in PROBLEMS.items():
        for entry in load_entries(family):
            defaults = entry.defaults()
            moves = [(n, v) for n, vs in entry.grid for v in _adjacent(vs, defaults[n])] if steps else []
            work.append((0, problem, entry, defaults))
            work += [(1, problem, entry, defaults | dict([m])) for m in moves]
    random.Random(0).shuffle(work)
    work.sort(key=lambda w: w[0])
    eager = {
        (problem, shape.name): median_us(reference_of(problem).reference, inputs_for(problem, shape))
        for problem in PROBLEMS
        for shape in load_problem(problem).spec.shapes_of(ShapeRole.TUNE)
    }
    with open(out, "w") as file:
        for _, problem, entry, params in work:
            if time.time() - started > seconds:
                break
            spec = load_problem(problem).spec
            row = {"entry": entry.name, "params": params}
            try:
                kernel = load_module(entry.instantiate(params, DATA_SHEETS["h200"], spec)).kernel_function
                row["error"] = worst_error(kernel, problem, spec.shapes_of(ShapeRole.HIDDEN))
                for shape in spec.shapes_of(ShapeRole.TUNE):
                    us = median_us(kernel, inputs_for(problem, shape))
                    row[shape.name] = [round(us, 2), round(eager[problem, shape.name] / us, 3)]
            except Exception as error:  # the sweep goes on
                row["failed"] = f"{type(error).__name__}: {str(error)[:200]}"
            file.write(json.dumps(row) + "\n")
            file.flush()
    print(time.time() - started, len(work), eager)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), "steps" in sys.argv[3:])
