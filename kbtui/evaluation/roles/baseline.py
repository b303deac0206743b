"""Effects: the trusted role that times PyTorch and what else a problem is compared with: see ``baseline_calls``.

It answers the calls a candidate's child answers, with ``open`` in place of ``load``. PyTorch keeps its own defaults
here (TF32 in cuDNN, for one): that is what a user would be running.
"""

from collections.abc import Callable
from typing import Any

import torch

from kbtui.domain.codec import from_plain
from kbtui.domain.problem import Problem
from kbtui.evaluation.baselines import COMPILED
from kbtui.evaluation.reference import LoadedReference, load_reference
from kbtui.evaluation.roles.baseline_calls import baseline_call
from kbtui.evaluation.roles.candidate import Candidate, device, warm

__all__ = ["make", "warm"]


def make(fds: tuple[int, ...]) -> dict[str, Callable[..., Any]]:
    side = Candidate(fds)

    def open_problem(problem: dict[str, Any], name: str, shapes: list[dict[str, Any]], n_threads: int = 1) -> None:
        """``shapes``: it is called on each once here, so that what it compiles is compiled before anything is timed.

        ``n_threads``: processes that torch.compile may have; one is none beside this. A pool of them, which it starts
        whatever there is to do, would still be starting while this one is timed.
        """
        opened = from_plain(Problem, problem)
        if name in COMPILED:
            _limit(n_threads)
        loaded = load_reference(opened)
        call = baseline_call(name, loaded.reference, opened.spec.family)
        for shape in shapes:
            call(*_inputs(loaded, shape, opened.spec.distributions[0]))
            if device() == "cuda":
                torch.cuda.synchronize()
        side.use(call)
        side.release()

    names = ("warm", "map_arena", "bind", "warm_up", "timed", "back_to_back", "release")
    return {"open": open_problem, **{name: getattr(side, name) for name in names}}


def _limit(n_threads: int) -> None:
    from torch._inductor import config

    config.compile_threads = n_threads


def _inputs(loaded: LoadedReference, shape: dict[str, Any], distribution: str) -> tuple[Any, ...]:
    dims = {str(name): int(size) for name, size in shape["dims"]}
    made = loaded.make_inputs(dims, 0, device(), distribution, dtype=shape["dtype"])
    return tuple(x.contiguous() if isinstance(x, torch.Tensor) else x for x in made)
