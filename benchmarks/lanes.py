"""Kernels of several problems put to the gate side by side on one device, each problem in a lane of its own.

A lane has a device of its own in a folder of its own: while one opens or compiles, another has the GPU, of which
kbtui's lock lets in one at a time. Effects: devices and their children, threads, temporary folders.
"""

import contextlib
import queue
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Protocol, TypeVar, runtime_checkable

from kbtui.commands.verify import whole_gate
from kbtui.domain.verdict import Verdict
from kbtui.engine.ports import Device
from kbtui.errors import KbtuiError
from kbtui.evaluation.devices import open_device
from kbtui.evaluation.devices.cuda import CudaDevice
from kbtui.evaluation.devices.cuda_gates import Gated, WholeGates
from kbtui.problems import load_problem

Job = TypeVar("Job")
_COMPILE_TIMEOUT_S, _SPARES = 150.0, 3
#: Jobs of a lane that are compiled while one is judged: more would only crowd the cores.
_AHEAD = 6


@runtime_checkable
class GatesMany(Protocol):
    """A device that gates others while one grows old."""

    def whole_gates(self, seed: int, alone: bool) -> WholeGates: ...


@dataclass(slots=True)
class Gating(Generic[Job]):
    """Jobs at the whole gate, on one device or several; ``done`` gets each with its verdict and its process's age.

    On a device that gates many a verdict may come later, with another's or from ``finish``. ``alone``: see
    ``WholeGates``.
    """

    done: Callable[[Device, Job, Verdict, float | None], None]
    seed: int = 0
    alone: bool = True
    _gates: dict[int, tuple[WholeGates, dict[str, Job]]] = field(default_factory=dict)

    def put(self, device: Device, job: Job, source: str) -> None:
        if not isinstance(device, GatesMany):
            return self.done(device, job, whole_gate(device, source, self.seed), None)
        if id(device) not in self._gates:
            self._gates[id(device)] = (device.whole_gates(self.seed, self.alone), {})
        gates, begun = self._gates[id(device)]
        begun[name := f"a{len(begun)}"] = job
        self._settle(device, begun, gates.put(name, source))

    def finish(self, device: Device) -> None:
        """Get the verdicts that are still to come, before the device's problem is closed."""
        if id(device) in self._gates:
            gates, begun = self._gates.pop(id(device))
            self._settle(device, begun, gates.finish())

    def _settle(self, device: Device, begun: Mapping[str, Job], found: Iterable[Gated]) -> None:
        for gated in found:
            self.done(device, begun[gated.name], gated.verdict, gated.age_s)


def _no_more(_: Device) -> None: ...


def in_lanes(
    device_key: str,
    groups: Mapping[str, Sequence[Job]],
    sources: Callable[[Job], Sequence[str]],
    do: Callable[[Device, Job], None],
    until: float,
    n_lanes: int,
    after: Callable[[Device], None] = _no_more,
) -> dict[str, str]:
    """``do`` each job on a device with its problem open, groups by problem, the largest first, until then.

    ``sources`` of a job are compiled ahead; ``after`` is called with a problem's jobs done, before it is closed.
    Returns why a problem could not be opened, by problem.
    """
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    refused: dict[str, str] = {}
    for problem in sorted(groups, key=lambda p: -len(groups[p])):
        waiting.put(problem)

    def lane() -> None:
        with tempfile.TemporaryDirectory(prefix="kbtui-lane-") as root, contextlib.suppress(queue.Empty):
            device = _device(device_key, Path(root))
            try:
                while time.monotonic() < until:
                    problem = waiting.get_nowait()
                    try:
                        _group(device, problem, groups[problem], sources, do, until)
                        after(device)
                    except KbtuiError as error:
                        refused[problem] = str(error)
            finally:
                device.close()

    threads = [threading.Thread(target=lane) for _ in range(min(n_lanes, len(groups)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return refused


def _device(key: str, root: Path) -> Device:
    """With no baseline to time; patient where lanes share the cores that compile."""
    if key.startswith("cuda"):
        return CudaDevice(key, root, compile_timeout_s=_COMPILE_TIMEOUT_S, spares=_SPARES, baselines=())
    return open_device(key, root)


def _group(
    device: Device,
    problem: str,
    jobs: Sequence[Job],
    sources: Callable[[Job], Sequence[str]],
    do: Callable[[Device, Job], None],
    until: float,
) -> None:
    device.open(load_problem(problem))
    for number, job in enumerate(jobs):
        for ahead in jobs[number + 1 if number else 0 : number + 1 + _AHEAD]:
            for source in sources(ahead):
                _compile_ahead(device, source)
        if time.monotonic() < until:
            do(device, job)


def _compile_ahead(device: Device, source: str) -> None:
    """For the whole gate in one request, whose shapes are compiled together; it would wait behind all that is ahead."""
    if isinstance(device, CudaDevice):
        device.compile_for_gate(source)
    else:
        device.prefetch(source)
