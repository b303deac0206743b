"""Effects: runs on the GPU: checks and times sources against each other: python on_gpu.py JOBS.json OUT.json [profile].

A job is one problem on one shape with named sources, the first of which the others are compared with. Every answer is
held against the float64 oracle on two distributions, with the gate's own tolerance. Times are the device's, with a
cold L2, in turns A B B A. With ``profile``: calls each job's first source once inside a profiler range, for ncu.
"""

import json
import os
import sys
from pathlib import Path
from statistics import median
from typing import Any

ROUNDS = 5
BLOCK_US = 4000.0
DISTRIBUTIONS = 2


def main(arguments: list[str]) -> int:
    jobs = json.loads(Path(arguments[0]).read_text())
    os.environ["TRITON_CACHE_DIR"] = jobs["cache"]
    import torch

    from kbtui.evaluation.roles.bench import Bench

    torch.set_grad_enabled(False)
    done: dict[str, Any] = {}
    if arguments[2:] == ["profile"]:
        for job in jobs["jobs"]:
            done[job["name"]] = called_once(job)
            torch.cuda.empty_cache()
            Path(arguments[1]).write_text(json.dumps(done))
        return 0
    bench = Bench()
    for job in jobs["jobs"]:
        try:
            done[job["name"]] = run(job, bench)
        except Exception as error:  # one job's failure is told, and does not end the others
            done[job["name"]] = {"error": f"{type(error).__name__}: {error}"[:500]}
        torch.cuda.empty_cache()
        Path(arguments[1]).write_text(json.dumps(done))
    return 0


def called_once(job: dict[str, Any]) -> dict[str, Any]:
    import torch

    from kbtui.evaluation import candidate_module

    inputs = inputs_of(job, 0)
    function = candidate_module.load(next(iter(job["sources"].values())))
    for _ in range(2):
        function(*inputs)
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    function(*inputs)
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()
    return {}


def run(job: dict[str, Any], bench: Any) -> dict[str, Any]:
    from kbtui.evaluation import candidate_module

    names, calls, told = list(job["sources"]), {}, {}
    answers = [expected_of(job, n) for n in range(DISTRIBUTIONS)]
    inputs = answers[0][0]
    for name in names:
        try:
            function = candidate_module.load(job["sources"][name])
            told[name] = {"fault": fault(function, answers, job)}
        except Exception as error:  # a candidate may raise anything
            told[name] = {"fault": f"{type(error).__name__}: {error}"[:300]}
            continue
        calls[name] = lambda _i, f=function: f(*inputs)
    first = names[0]
    for name in names:
        if name in calls and first in calls:
            told[name] |= timed(bench, calls[first], calls[name])
    return told


def problem_of(job: dict[str, Any]) -> tuple[Any, Any]:
    from kbtui.domain.codec import from_plain
    from kbtui.domain.problem import Problem, Shape

    return from_plain(Problem, job["problem"]), from_plain(Shape, job["shape"])


def inputs_of(job: dict[str, Any], n: int) -> tuple[Any, ...]:
    import torch

    from kbtui.evaluation.reference import load_reference

    problem, shape = problem_of(job)
    made = load_reference(problem).make_inputs(
        shape.as_dict(), n, "cuda", problem.spec.distributions[n], dtype=problem.spec.dtype_of(shape)
    )
    return tuple(x.contiguous() if isinstance(x, torch.Tensor) else x for x in made)


def expected_of(job: dict[str, Any], n: int) -> tuple[tuple[Any, ...], Any]:
    from kbtui.evaluation.reference import load_reference
    from kbtui.evaluation.roles import oracle

    inputs = inputs_of(job, n)
    return inputs, oracle.expect(load_reference(problem_of(job)[0]).reference, inputs)


def fault(function: Any, answers: list[tuple[tuple[Any, ...], Any]], job: dict[str, Any]) -> str | None:
    """The first thing that is wrong with the answers, None if nothing is."""
    from dataclasses import replace

    from kbtui.evaluation.gate.tolerance import fault_of
    from kbtui.evaluation.roles import oracle
    from kbtui.evaluation.roles.outputs import as_outputs

    spec = problem_of(job)[0].spec
    tolerance = replace(spec.tolerance, floor=job["floor"])
    for inputs, expected in answers:
        for got, wanted in zip(as_outputs(function(*inputs)), expected, strict=True):
            found = fault_of(oracle.measure(got.contiguous(), wanted), tolerance)
            if found is not None:
                return found.detail
    return None


def timed(bench: Any, first: Any, other: Any) -> dict[str, Any]:
    """Median microseconds of ``other``, and how many times as fast as ``first`` it is, round by round."""
    queues = bench.warm_up(first, 0.01), bench.warm_up(other, 0.01)
    once = [median(bench.timed(call, 3, q, -1, drop)) for call, q in zip((first, other), queues, strict=True)]
    n_calls = [max(3, min(40, round(BLOCK_US / us))) for us in once]
    ratios, samples = [], []
    for _ in range(ROUNDS):
        blocks = [median(bench.timed(c, n_calls[i], queues[i], -1, drop)) for i, c in _turns(first, other)]
        ratios.append((blocks[0] + blocks[3]) / (blocks[1] + blocks[2]))
        samples += blocks[1:3]
    host_us = bench.back_to_back(other, 5)[0]
    return {"us": median(samples), "ratio": median(ratios), "low": min(ratios), "high": max(ratios), "host_us": host_us}


def _turns(first: Any, other: Any) -> tuple[tuple[int, Any], ...]:
    return (0, first), (1, other), (1, other), (0, first)


def drop(_: Any) -> None: ...


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
