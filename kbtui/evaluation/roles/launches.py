"""Effects: watches or suppresses every Triton launch of this process, on a GPU and under the interpreter."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch. ``arguments`` as the kernel gets them; ``stream`` is CUDA's handle, 0 under the interpreter."""

    kernel: str
    grid: Any
    arguments: Sequence[Any]
    stream: int = 0

    @property
    def signature(self) -> str:
        """What is the same whenever the same work is asked for: name, grid, sizes and dtypes of tensors."""
        tensors = [f"{tuple(a.shape)}{a.dtype}" for a in self.arguments if isinstance(a, torch.Tensor)]
        grid = self.grid if isinstance(self.grid, tuple) else "computed"
        return f"{self.kernel}{grid}{tensors}"


OnLaunch = Callable[[Launch], bool]
Around = Callable[[Launch], contextlib.AbstractContextManager[Any]]


def _nothing(_: Launch) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()


@contextlib.contextmanager
def intercepted(on_launch: OnLaunch, around: Around = _nothing) -> Iterator[None]:
    """Call ``on_launch`` at each launch; where it returns False the kernel does not run.

    ``around`` makes a context for the launch itself. The lowest Python step of a launch is replaced, so direct,
    autotuned and pre-compiled launches all pass through it.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(_interpreted(on_launch, around))
        stack.enter_context(_compiled(on_launch, around))
        yield


@contextlib.contextmanager
def _interpreted(on_launch: OnLaunch, around: Around) -> Iterator[None]:
    from triton.runtime.interpreter import GridExecutor

    original = GridExecutor.__call__

    def launch(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = Launch(self.fn.__name__, self.grid, (*args, *kwargs.values()))
        if on_launch(found):
            with around(found):
                return original(self, *args, **kwargs)
        return None

    with _replaced(GridExecutor, "__call__", launch):
        yield


@contextlib.contextmanager
def _compiled(on_launch: OnLaunch, around: Around) -> Iterator[None]:
    from triton.compiler.compiler import CompiledKernel

    original: property = vars(CompiledKernel)["run"]

    def run(self: Any) -> Callable[..., Any]:
        step: Callable[..., Any] = original.__get__(self)

        def launch(*args: Any) -> Any:
            # Grid, stream, function, three of metadata and hooks, then the kernel's own (Triton 3.6).
            found = Launch(self.name, args[:3], args[_N_BEFORE:], args[3] if isinstance(args[3], int) else 0)
            if on_launch(found):
                with around(found):
                    return step(*args)
            return None

        return launch

    with _replaced(CompiledKernel, "run", property(run)):
        yield


#: What a compiled launch takes before the kernel's own arguments.
_N_BEFORE = 9


@contextlib.contextmanager
def _replaced(owner: type, name: str, value: Any) -> Iterator[None]:
    before = vars(owner)[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
