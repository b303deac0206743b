"""Effects: the role of the confined child that runs one candidate, on a GPU or under the interpreter.

It knows neither the reference nor what is expected: it gets inputs in shared memory, runs the candidate and copies
the outputs to a mailbox. What it says of itself (types, aliases, launches, times) the candidate could forge, so the
referee judges values from outside and the engine keeps a clock of its own.
"""

import contextlib
import functools
import os
import time
from collections.abc import Callable
from typing import Any

import torch

from kbtui.domain.codec import from_plain
from kbtui.domain.device import DeviceSpec
from kbtui.evaluation import candidate_module
from kbtui.evaluation.model_context import context_from_plain
from kbtui.evaluation.roles import audit, device_memory, launches
from kbtui.evaluation.roles.arena import Arena, CpuArena, CudaArena, argument_at, tensor_at
from kbtui.evaluation.roles.bench import WARM_CALLS
from kbtui.evaluation.roles.guard import Watch, seen, unwatched
from kbtui.evaluation.roles.layout import Layout, layout_from_plain
from kbtui.evaluation.roles.nudge import around_calls
from kbtui.evaluation.roles.outputs import as_outputs, output_fault
from kbtui.evaluation.roles.poison import poison_free_blocks
from kbtui.evaluation.roles.provenance import Provenance, warm_sums
from kbtui.evaluation.roles.unchanged import Unchanged, harness_modules, hide_harness

DEVICE_VARIABLE = "KBTUI_DEVICE"
_NAMES_SHOWN = 8
_FEWEST_LATE = 14


#: Of the device's memory for what a candidate allocates; the referee needs some beside the arena.
_MEMORY_SHARE = 0.5
#: What a spare has noted ahead, for it takes a tenth of a second.
_WARMED: list[tuple[Unchanged, Any]] = []


def _as_it_is() -> tuple[Unchanged, Any]:
    """What a candidate must leave as it is, and what is imported late: afterwards no name leads there."""
    from kbtui.evaluation.roles.bench import Bench

    return Unchanged(harness_modules()), Bench


class GlobalsChanged(Exception):  # noqa: N818
    """The candidate's import replaced something that is not its own."""


def device() -> str:
    """``cuda`` or ``cpu``, as the engine set it for this child."""
    return os.environ.get(DEVICE_VARIABLE, "cpu")


def warm(fds: tuple[int, ...]) -> None:
    """In a spare, before its candidate is known: everything a first call would otherwise wait for."""
    del fds
    torch.set_grad_enabled(False)
    if device() == "cuda":
        from kbtui.evaluation.roles.warmth import lap, warm_cuda

        warm_cuda()
        torch.cuda.set_per_process_memory_fraction(_MEMORY_SHARE)
        if not _WARMED:
            with lap("sums"):
                warm_sums("cuda")
            with lap("noting"):
                _WARMED.append(_as_it_is())


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
        self._make_bench: Any = None
        self._queue_s = 0.0
        self._unchanged: Unchanged | None = None
        self._refused: Callable[[], tuple[str, ...]] = tuple
        self._provenance: Provenance | None = None
        self._fresh = False
        self._as_watched: list[str] = []
        self._as_timed: list[str] | None = None
        self._gpu: Callable[[], Any] = contextlib.nullcontext

    def warm(self) -> dict[str, list[float]]:
        """Be as a spare is. For a child that no pool has warmed. Returns what each part took, as in ``warmth.LAPS``."""
        warm(())
        if device() != "cuda":
            return {}
        from kbtui.evaluation.roles.warmth import LAPS

        return LAPS

    def map_arena(self, n_bytes: int, payload: bytes) -> None:
        """Open the referee's device memory."""
        self._arena = CudaArena.open(payload, n_bytes)

    def reserve(self, n_bytes: int) -> None:
        """In a spare: memory for a check's outputs."""
        if device() == "cuda":
            device_memory.reserve(n_bytes)

    def pretend(self, chip: dict[str, Any]) -> None:
        """Under the interpreter: let tensors, torch and Triton answer as on this GPU (a DeviceSpec)."""
        from kbtui.evaluation.compile.interpreted import InterpretedGpu, skip_overflow_checks

        self._gpu = InterpretedGpu(from_plain(DeviceSpec, chip))
        skip_overflow_checks()

    def load(self, payload: bytes, cache: str = "") -> None:
        """Import the candidate's source; raises what it raises. ``cache``: where its compiled kernels lie.

        A ModelNew is built when its first inputs are bound, for it depends on them.
        """
        if cache:
            os.environ["TRITON_CACHE_DIR"] = cache
        self._source, self._context = payload.decode(), None
        self._function = None
        self._is_model = candidate_module.needs_context(self._source)
        self._lock_up()
        if not self._is_model:
            self._import()

    def _lock_up(self) -> None:
        """From here on a candidate's code runs in this process: note what is there, leave nothing lying about."""
        self._provenance = Provenance(device(), (self._mapped.address, self._mapped.n_bytes))
        self._unchanged, self._make_bench = _WARMED.pop() if _WARMED else _as_it_is()
        self._unchanged.note_switches()
        self._unchanged.note_flags()
        hide_harness()
        self._refused = audit.install()

    def _import(self, context: dict[str, Any] | None = None) -> None:
        """Raises what the import raises, GlobalsChanged where it patched something, PermissionError where it tried."""
        watch = Watch(device(), (), self._provenance)
        with self._gpu(), launches.intercepted(_let, unwatched), watch:
            function = candidate_module.load(self._source, context_from_plain(context))
        changed = self._changed()
        if changed:
            raise GlobalsChanged(f"its import changed {', '.join(changed[:_NAMES_SHOWN])}")
        if self._refused():
            raise PermissionError(f"its import asked for {', '.join(dict.fromkeys(self._refused()))}")
        self.use(function)

    def use(self, function: Callable[..., Any]) -> None:
        """Run this function from now on (the baseline's way in)."""
        self._function = function

    def bind(self, layout: dict[str, Any], context: dict[str, Any] | None = None) -> None:
        """The inputs of one shape; replaces the last ones. ``context``: how the reference's Model was built."""
        if self._is_model and (self._function is None or context != self._context):
            self._import(context)
        self._context = context
        self._fresh = True
        self._as_watched, self._as_timed = [], None
        self._layout = layout_from_plain(layout)
        self._copies = [[argument_at(self._mapped, a) for a in copy] for copy in self._layout.copies]

    def check(self, copy: int = 0, guard: bool = False, allowed: tuple[str, ...] = ()) -> dict[str, Any]:
        """One call on poisoned memory; outputs go to the mailbox. With ``guard`` its operations are watched."""
        poison_free_blocks((slot.n_bytes for slot in self._bound.outputs), device())
        return self._watched(copy, allowed) if guard else self._unwatched(copy)

    def _watched(self, copy: int, allowed: tuple[str, ...]) -> dict[str, Any]:
        provenance = self._provenance or Provenance(device(), (self._mapped.address, self._mapped.n_bytes))
        watch = Watch(device(), allowed, provenance)
        launched: list[launches.Launch] = []

        def note(launch: launches.Launch) -> bool:
            launched.append(launch)
            return True

        self._brought().clear()
        provenance.begin(self._copies[copy % len(self._copies)], strict=self._fresh)
        with launches.intercepted(note, lambda launch: seen(launch, provenance)), watch:
            result = self._call(copy)
        provenance.end(as_outputs(result))
        self._as_watched = [launch.signature for launch in launched]
        fault = self._deliver(result) or self._other_launches(self._as_timed, "while it was timed")
        self._as_timed = None
        if provenance.inputs_written:
            fault = {"reason": "input_modified", "detail": "an input was written to between launches"}
        host = [f"{name} to the host" for name in self._brought()]
        return self._report(fault, launched, watch.forbidden + host + provenance.strangers)

    def _brought(self) -> list[str]:
        brought: list[str] = getattr(self._gpu, "brought", [])
        return brought

    def _unwatched(self, copy: int) -> dict[str, Any]:
        """No mode is in force, nothing is poisoned; only what is launched is counted."""
        launched: list[launches.Launch] = []

        def note(launch: launches.Launch) -> bool:
            launched.append(launch)
            return True

        with launches.intercepted(note, unwatched):
            result = self._call(copy)
        fault = self._deliver(result)
        other = self._other_launches([launch.signature for launch in launched], "while nobody watched")
        return self._report(fault or other, launched, [])

    def _other_launches(self, now: list[str] | None, when: str) -> dict[str, str] | None:
        """A first call may prepare something; a later one does the rest of what it did, or something else computes."""
        if now is None or not self._as_watched or (now and now == self._as_watched[-len(now) :]):
            return None
        detail = f"{len(now)} launches {when}, other ones than while its operations were watched"
        return {"reason": "kernels_do_nothing", "detail": detail}

    def _report(
        self, fault: dict[str, str] | None, launched: list[launches.Launch], forbidden: list[str]
    ) -> dict[str, Any]:
        _wait()
        self._fresh = False
        return {
            "fault": self._asked_fault() or fault or self._global_fault(),
            "launched": [launch.kernel for launch in launched[:_NAMES_SHOWN]],
            "n_launches": len(launched),
            "forbidden": list(dict.fromkeys(forbidden + _on_other_streams(launched)))[:_NAMES_SHOWN],
        }

    def no_op(self, copy: int = 0) -> dict[str, Any]:
        """One call with every launch left out. Whatever it raises or returns is fine, as long as it is not right.

        No mode is in force, so that who asks whether it is watched learns nothing.
        """
        poison_free_blocks((slot.n_bytes for slot in self._bound.outputs), device())
        try:
            with launches.intercepted(lambda _: False, unwatched):
                result = self._call(copy)
            fault = self._deliver(result)
            _wait()
            return {"returned": fault is None}
        except Exception as error:
            return {"returned": False, "raised": type(error).__name__}

    def repeat(self, n_calls: int, at_most_s: float) -> int:
        """Call it many times, in short succession, its answers left unread; returns how often.

        ``at_most_s`` of this process's own time, once it was called a few times: a busy machine makes no difference.
        """
        began, n = time.process_time(), 0
        while n < n_calls and (n < _FEWEST_LATE or time.process_time() - began < at_most_s):
            self._rotating(0)
            n += 1
        _wait()
        self._fresh = False
        return n

    def warm_up(self, at_least_s: float) -> float:
        """Warm the bound shape; returns seconds the host needs to queue one call."""
        self._fresh = False
        self._bench = self._bench or self._new_bench()
        self._queue_s = self._bench.warm_up(self._rotating, at_least_s, self._nudges("warm", WARM_CALLS))
        return self._queue_s

    def _new_bench(self) -> Any:
        if self._make_bench is None:
            from kbtui.evaluation.roles.bench import Bench

            self._make_bench = Bench
        return self._make_bench()

    def timed(self, n_calls: int, keep: int, seed: str = "") -> list[float]:
        """Device microseconds of each call; the result of call ``keep`` goes to the mailbox.

        With ``seed`` each call's inputs are nudged before it, and back after it, outside what is timed.
        """
        around = self._nudges(seed, n_calls) if seed else _left_alone
        call = functools.partial(self._timed_call, keep)
        samples: list[float] = self._bench.timed(call, n_calls, self._queue_s, keep, self._deliver, around)
        return samples

    def _timed_call(self, keep: int, i: int) -> Any:
        """What the kept call launches is written down, for the next watched call to be compared with."""
        if i != keep:
            return self._rotating(i)
        launched: list[str] = []

        def note(launch: launches.Launch) -> bool:
            launched.append(launch.signature)
            return True

        with launches.intercepted(note):
            result = self._rotating(i)
        self._as_timed = launched
        return result

    def _nudges(self, seed: str, n_calls: int) -> Callable[[int], contextlib.AbstractContextManager[None]]:
        return around_calls(self._copies, seed, n_calls)

    def back_to_back(self, n_calls: int) -> list[float]:
        """[host, device] microseconds a call, without a cold L2."""
        return list(self._bench.back_to_back(self._rotating, n_calls))

    def release(self, everything: bool = False) -> None:
        """Give cached memory back between shapes, where it is much."""
        self._copies = []
        if device() == "cuda":
            device_memory.give_back(everything)

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

    def _changed(self) -> list[str]:
        return self._unchanged.changed() if self._unchanged is not None else []

    def _asked_fault(self) -> dict[str, str] | None:
        asked = dict.fromkeys(self._refused())
        detail = f"it asked Python for {', '.join(list(asked)[:_NAMES_SHOWN])}"
        return {"reason": "sandbox_violation", "detail": detail} if asked else None

    def _global_fault(self) -> dict[str, str] | None:
        changed = self._changed()
        detail = f"it changed {', '.join(changed[:_NAMES_SHOWN])}"
        return {"reason": "globals_changed", "detail": detail} if changed else None


def _let(_: launches.Launch) -> bool:
    return True


def _on_other_streams(launched: list[launches.Launch]) -> list[str]:
    """Timers stand on the current stream: work on another is not timed."""
    if device() != "cuda":
        return []
    mine = int(torch.cuda.current_stream().cuda_stream)
    strangers = {launch.kernel for launch in launched if launch.stream != mine}
    return [f"{kernel} on another stream" for kernel in sorted(strangers)]


def _left_alone(_: int) -> contextlib.AbstractContextManager[None]:
    return contextlib.nullcontext()


def _wait() -> None:
    """Until the device has done all that was asked: errors of a launch show here, and copies are there to be read."""
    if device() == "cuda":
        torch.cuda.synchronize()


def make(fds: tuple[int, ...]) -> dict[str, Callable[..., Any]]:
    candidate = Candidate(fds)
    names = (
        "warm", "map_arena", "reserve", "pretend", "load", "bind", "check", "no_op", "repeat", "warm_up", "timed",
        "back_to_back", "release",
    )  # fmt: skip
    return {name: getattr(candidate, name) for name in names}
