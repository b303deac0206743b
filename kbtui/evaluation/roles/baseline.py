"""Effects: the trusted role that times PyTorch: the problem's reference, eager or through torch.compile.

It answers the calls a candidate's child answers, with ``open`` in place of ``load``. PyTorch keeps its own defaults
here (TF32 in cuDNN, for one): that is what a user would be running.
"""

from collections.abc import Callable
from typing import Any

import torch

from kbtui.domain.codec import from_plain
from kbtui.domain.problem import Problem
from kbtui.evaluation.reference import load_reference
from kbtui.evaluation.roles.candidate import Candidate, warm

__all__ = ["make", "warm"]


def make(fds: tuple[int, ...]) -> dict[str, Callable[..., Any]]:
    side = Candidate(fds)

    def open_problem(problem: dict[str, Any], compiled: bool = False) -> None:
        reference = load_reference(from_plain(Problem, problem)).reference
        side.use(torch.compile(reference) if compiled else reference)

    names = ("warm", "map_arena", "bind", "warm_up", "timed", "back_to_back", "release")
    return {"open": open_problem, **{name: getattr(side, name) for name in names}}
