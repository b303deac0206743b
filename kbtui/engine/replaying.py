"""What a session does otherwise on a recorded pool: its problem, its generators, and time that is simulated."""

import os
import socket
from pathlib import Path
from urllib.parse import urlsplit

from kbtui.console import tell
from kbtui.domain.event import RunStarted, Spent
from kbtui.domain.measurement import Clock
from kbtui.domain.problem import Problem
from kbtui.engine.meter import Meter
from kbtui.engine.ports import Device, Generator, Ledger
from kbtui.engine.spec import RunSpec
from kbtui.evaluation.devices import REPLAY
from kbtui.evaluation.devices.replay import ReplayDevice
from kbtui.generation import LlmServer, make_generators
from kbtui.generation.replay import recorded_generators
from kbtui.kernel_file import with_kernel


def problem_on(device: Device, problem: Problem, kernel: Path | None = None) -> Problem:
    """The pool's own copy of the problem on a replay, the problem itself elsewhere; ``kernel`` in place of its first.

    Whatever a pool tells is about its own problem and no other. Raises UsageError on another, and on a bad file.
    """
    if not isinstance(device, ReplayDevice):
        return with_kernel(problem, kernel)
    own = device.problem(problem)
    if (own.spec, own.reference_source) != (problem.spec, problem.reference_source):
        tell(f"{problem.path} is not as it was recorded: what follows is about the pool's own {own.spec.name}")
    return with_kernel(own, kernel)


def generators_on(device: Device, started: RunStarted, spec: RunSpec) -> dict[str, Generator]:
    """Recorded answers on a replay, else generators that think. Raises UsageError on a name that cannot be had."""
    if isinstance(device, ReplayDevice):
        return recorded_generators(started.generators, device.pool, device.time.owe)
    server = LlmServer(spec.ollama_host, spec.llm_url, _is_local(spec) and device.spec.clock is Clock.MEASURED)
    return make_generators(started.generators, started.model, server)


def _is_local(spec: RunSpec) -> bool:
    """Whether the model's server runs on this machine, as far as its address tells."""
    named = spec.llm_url or spec.ollama_host or os.environ.get("OLLAMA_HOST") or "127.0.0.1"
    host = urlsplit(named if "//" in named else f"//{named}").hostname or ""
    return host in ("localhost", "127.0.0.1", "::1", "0.0.0.0", socket.gethostname())


def meter_on(device: Device, spent: Spent) -> Meter:
    """The monotonic clock, or on a replay what the pool says that everything took."""
    if isinstance(device, ReplayDevice):
        return Meter(spent, device.time.now_s, device.time.settle)
    return Meter(spent)


def spent_of(ledger: Ledger, started: RunStarted) -> Spent:
    """What a run has used.

    On a replay only what is recorded counts: time that a killed engine had not recorded was never real, and a run
    that is resumed ends as the undisturbed one does.
    """
    if not started.device.key.startswith(REPLAY):
        return ledger.spent()
    *_, last = ledger.events()
    return Spent(last.wall_s, last.gpu_s)
