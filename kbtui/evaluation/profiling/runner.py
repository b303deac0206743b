"""Effects: the program that ncu profiles: ``python -m kbtui.evaluation.profiling.runner JOB.json``.

It makes the inputs that the measurement used, warms the candidate, and calls it once inside a profiler range. The
context is created before the sandbox is put on and the candidate imported after it, so that ncu's own connection is
made by then.
"""

import ctypes
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_WARM_CALLS = 3


def main(arguments: list[str] | None = None) -> int:
    job: dict[str, Any] = json.loads(Path((arguments or sys.argv[1:])[0]).read_text())
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.environ["TRITON_CACHE_DIR"] = job["cache"]
    inputs = _inputs(job)
    if job["confine"]:
        _confine(job)
    _call_profiled(_load(job["source"]), inputs)
    return 0


def _inputs(job: dict[str, Any]) -> tuple[Any, ...]:
    import torch

    from kbtui.domain.codec import from_plain
    from kbtui.domain.problem import Problem, Shape
    from kbtui.evaluation.reference import load_reference

    problem: Problem = from_plain(Problem, job["problem"])
    shape: Shape = from_plain(Shape, job["shape"])
    torch.cuda.set_device(job["gpu"])
    torch.zeros(1, device="cuda").add_(1)
    made = load_reference(problem).make_inputs(
        shape.as_dict(), job["seed"], "cuda", problem.spec.distributions[0], dtype=problem.spec.dtype_of(shape)
    )
    return tuple(x.contiguous() if isinstance(x, torch.Tensor) else x for x in made)


def _confine(job: dict[str, Any]) -> None:
    from dataclasses import replace

    from kbtui.evaluation.compile.tools import assembler_programs
    from kbtui.evaluation.process import preload, sandbox

    cache, scratch = Path(job["cache"]), Path(job["scratch"])
    cache.mkdir(parents=True, exist_ok=True)
    # Triton asks programs for their versions at a first launch; asked before, it starts none later.
    preload.load()
    # ncu's library in this process talks to ncu through files in the temporary directories.
    policy = sandbox.cuda_policy(write=(cache, Path("/tmp")), read=_ncu_places())
    # That library reads its variables when the range opens: the environment was cleaned before ncu started instead.
    sandbox.apply(replace(policy, exec=assembler_programs()), scratch, scrub=False)


def _ncu_places() -> tuple[Path, ...]:
    """Where ncu's injected library lies: it may load more of itself later."""
    injected = os.environ.get("CUDA_INJECTION64_PATH", os.environ.get("LD_PRELOAD", ""))
    return (Path("/opt/nvidia"), Path("/usr/local"), *(Path(p).parent for p in injected.split(":") if p))


def _load(source: str) -> Any:
    from kbtui.evaluation import candidate_module

    return candidate_module.load(source)


def _call_profiled(function: Any, inputs: tuple[Any, ...]) -> None:
    import torch

    with torch.no_grad():
        for _ in range(_WARM_CALLS):
            function(*inputs)
        torch.cuda.synchronize()
        torch.cuda.profiler.start()  # type: ignore[no-untyped-call]
        function(*inputs)
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    sys.exit(main())
