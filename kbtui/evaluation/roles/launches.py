"""Effects: watches or suppresses every Triton launch of this process, on a GPU and under the interpreter."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

OnLaunch = Callable[[str], bool]


@contextlib.contextmanager
def intercepted(on_launch: OnLaunch, around: Callable[[], Any] = contextlib.nullcontext) -> Iterator[None]:
    """Call ``on_launch(kernel name)`` at each launch; where it returns False the kernel does not run.

    ``around`` makes a context for the launch itself. The lowest Python step of a launch is replaced, so direct,
    autotuned and pre-compiled launches all pass through it.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(_interpreted(on_launch, around))
        stack.enter_context(_compiled(on_launch, around))
        yield


@contextlib.contextmanager
def _interpreted(on_launch: OnLaunch, around: Callable[[], Any]) -> Iterator[None]:
    from triton.runtime.interpreter import GridExecutor

    original = GridExecutor.__call__

    def launch(self: Any, *args: Any, **kwargs: Any) -> Any:
        if on_launch(self.fn.__name__):
            with around():
                return original(self, *args, **kwargs)
        return None

    with _replaced(GridExecutor, "__call__", launch):
        yield


@contextlib.contextmanager
def _compiled(on_launch: OnLaunch, around: Callable[[], Any]) -> Iterator[None]:
    from triton.compiler.compiler import CompiledKernel

    original: property = vars(CompiledKernel)["run"]

    def run(self: Any) -> Callable[..., Any]:
        step: Callable[..., Any] = original.__get__(self)

        def launch(*args: Any) -> Any:
            if on_launch(self.name):
                with around():
                    return step(*args)
            return None

        return launch

    with _replaced(CompiledKernel, "run", property(run)):
        yield


@contextlib.contextmanager
def _replaced(owner: type, name: str, value: Any) -> Iterator[None]:
    before = vars(owner)[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
