"""Effects: the role of the confined child that runs one candidate, on a GPU or under the interpreter.

It knows neither the reference nor what is expected: it gets inputs in shared memory, runs the candidate and copies
the outputs to a mailbox. What it says of itself (types, aliases, launches, times) the candidate could forge, so the
referee judges values from outside and the engine keeps a clock of its own.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import torch

from kbtui.domain.codec import from_plain
from kbtui.domain.device import DeviceSpec
from kbtui.evaluation import candidate_module
from kbtui.evaluation.model_context import context_from_plain
from kbtui.evaluation.roles import launches
from kbtui.evaluation.roles.arena import Arena, CpuArena, CudaArena, argument_at, tensor_at
from kbtui.evaluation.roles.guard import Watch, global_flags, harness_objects, unwatched
from kbtui.evaluation.roles.layout import Layout, layout_from_plain
from kbtui.evaluation.roles.nudge import nudge
from kbtui.evaluation.roles.outputs import as_outputs, output_fault
from kbtui.evaluation.roles.poison import poison_free_blocks

DEVICE_VARIABLE = "KBTUI_DEVICE"
_NAMES_SHOWN = 8


def device() -> str:
    """``cuda`` or ``cpu``, as the engine set it for this child."""
    return os.environ.get(DEVICE_VARIABLE, "cpu")


def warm(fds: tuple[int, ...]) -> None:
    """In a spare, before its candidate is known: everything a first call would otherwise wait for."""
    del fds
    torch.set_grad_enabled(False)
    if device() == "cuda":
        from kbtui.evaluation.roles.warmth import warm_cuda

        warm_cuda()


class Candidate:
    """One candidate, loaded once. ``fds``: on the CPU, the arena's memfd."""

    def __init__(self, fds: tuple[int, ...]) -> None:
        torch.set_grad_enabled(False)
        self._arena: Arena | None = CpuArena(fds[0]) if fds else None
        self._function: Callable[..., Any] | None = None
        self._source = ""
        self._is_model = False
        self._context: dict[str, Any] | None = None
        self._layout: Layout | None = None
        self._copies: list[list[Any]] = []
        self._bench: Any = None
        self._queue_s = 0.0
        self._flags = global_flags()
        self._objects: dict[str, int] = {}
        self._gpu: Callable[[], Any] = contextlib.nullcontext

    def warm(self) -> None:
        """Be as a spare is. For a child that no pool has warmed."""
        warm(())

    def map_arena(self, n_bytes: int, payload: bytes) -> None:
        """Open the referee's device memory."""
        self._arena = CudaArena.open(payload, n_bytes)

    def pretend(self, chip: dict[str, Any]) -> None:
        """Under the interpreter: let tensors, torch and Triton answer as on this GPU (a DeviceSpec)."""
        from kbtui.evaluation.compile.interpreted import InterpretedGpu

        self._gpu = InterpretedGpu(from_plain(DeviceSpec, chip))

    def load(self, payload: bytes, cache: str = "") -> None:
        """Import the candidate's source; raises what it raises. ``cache``: where its compiled kernels lie.

        A ModelNew is built when its first inputs are bound, for it depends on them.
        """
        if cache:
            os.environ["TRITON_CACHE_DIR"] = cache
        self._source, self._context = payload.decode(), None
        self._objects = harness_objects()
        self._function = None
        self._is_model = candidate_module.needs_context(self._source)
        if not self._is_model:
            with self._gpu():
                self.use(candidate_module.load(self._source))

    def use(self, function: Callable[..., Any]) -> None:
        """Run this function from now on (the baseline's way in)."""
        self._function = function

    def bind(self, layout: dict[str, Any], context: dict[str, Any] | None = None) -> None:
        """The inputs of one shape; replaces the last ones. ``context``: how the reference's Model was built."""
        if self._is_model and (self._function is None or context != self._context):
            with self._gpu():
                self.use(candidate_module.load(self._source, context_from_plain(context)))
        self._context = context
        self._layout = layout_from_plain(layout)
        self._copies = [[argument_at(self._mapped, a) for a in copy] for copy in self._layout.copies]

    def check(self, copy: int = 0, guard: bool = False, allowed: tuple[str, ...] = ()) -> dict[str, Any]:
        """One call on poisoned memory; outputs go to the mailbox. With ``guard`` its operations are watched."""
        poison_free_blocks((slot.n_bytes for slot in self._bound.outputs), device())
        watch = Watch(device(), allowed)
        launched: list[str] = []

        def note(name: str) -> bool:
            launched.append(name)
            return True

        if guard:
            with launches.intercepted(note, unwatched), watch:
                result = self._call(copy)
        else:
            result = self._call(copy)
        fault = self._deliver(result)
        _wait()
        return {
            "fault": fault or self._flag_fault(),
            "launched": launched[:_NAMES_SHOWN],
            "n_launches": len(launched),
            "forbidden": sorted(set(watch.forbidden))[:_NAMES_SHOWN],
        }

    def no_op(self, copy: int = 0) -> dict[str, Any]:
        """One call with every launch left out. Whatever it raises or returns is fine, as long as it is not right."""
        poison_free_blocks((slot.n_bytes for slot in self._bound.outputs), device())
        try:
            with launches.intercepted(lambda _: False, unwatched), Watch(device()):
                result = self._call(copy)
            fault = self._deliver(result)
            _wait()
            return {"returned": fault is None}
        except Exception as error:
            return {"returned": False, "raised": type(error).__name__}

    def warm_up(self, at_least_s: float) -> float:
        """Warm the bound shape; returns seconds the host needs to queue one call."""
        from kbtui.evaluation.roles.bench import Bench

        self._bench = self._bench or Bench()
        self._queue_s = self._bench.warm_up(self._rotating, at_least_s, self._nudges("warm"))
        return self._queue_s

    def timed(self, n_calls: int, keep: int, seed: str = "") -> list[float]:
        """Device microseconds of each call; the result of call ``keep`` goes to the mailbox.

        With ``seed`` each call's inputs are nudged before it, and back after it, outside what is timed.
        """
        around = self._nudges(seed) if seed else _left_alone
        samples: list[float] = self._bench.timed(self._rotating, n_calls, self._queue_s, keep, self._deliver, around)
        return samples

    def _nudges(self, seed: str) -> Callable[[int], contextlib.AbstractContextManager[None]]:
        @contextlib.contextmanager
        def around(i: int) -> Iterator[None]:
            undo = nudge(self._copies[i % len(self._copies)], f"{seed}/{i}")
            yield
            for one in undo:
                one()

        return around

    def back_to_back(self, n_calls: int) -> list[float]:
        """[host, device] microseconds a call, without a cold L2."""
        return list(self._bench.back_to_back(self._rotating, n_calls))

    def release(self) -> None:
        """Give cached memory back between shapes."""
        self._copies = []
        if device() == "cuda":
            torch.cuda.empty_cache()

    @property
    def _mapped(self) -> Arena:
        if self._arena is None:
            raise RuntimeError("no arena is mapped")
        return self._arena

    @property
    def _bound(self) -> Layout:
        if self._layout is None:
            raise RuntimeError("no inputs are bound")
        return self._layout

    def _call(self, copy: int) -> Any:
        result = self._rotating(copy)
        _wait()
        return result

    def _rotating(self, i: int) -> Any:
        if self._function is None:
            raise RuntimeError("no candidate is loaded")
        with self._gpu():
            return self._function(*self._copies[i % len(self._copies)])

    def _deliver(self, result: Any) -> dict[str, str] | None:
        """Copy outputs to the mailbox; returns what is wrong with their kind instead, if something is."""
        arena, expected = self._mapped, self._bound.outputs
        outputs = as_outputs(result)
        fault = output_fault(outputs, expected, arena)
        if fault is None:
            for output, slot in zip(outputs, expected, strict=True):
                tensor_at(arena, slot).copy_(output)
        return fault

    def _flag_fault(self) -> dict[str, str] | None:
        after = global_flags()
        changed = [name for name, value in self._flags.items() if after[name] != value]
        now = harness_objects()
        changed += [name for name, value in self._objects.items() if now.get(name) != value]
        return (
            {"reason": "globals_changed", "detail": f"it changed torch's {', '.join(changed[:_NAMES_SHOWN])}"}
            if changed
            else None
        )


def _left_alone(_: int) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()


def _wait() -> None:
    """Until the device has done all that was asked: errors of a launch show here, and copies are there to be read."""
    if device() == "cuda":
        torch.cuda.synchronize()


def make(fds: tuple[int, ...]) -> dict[str, Callable[..., Any]]:
    candidate = Candidate(fds)
    names = (
        "warm",
        "map_arena",
        "pretend",
        "load",
        "bind",
        "check",
        "no_op",
        "warm_up",
        "timed",
        "back_to_back",
        "release",
    )
    return {name: getattr(candidate, name) for name in names}
