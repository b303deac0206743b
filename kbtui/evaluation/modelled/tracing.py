"""Effects: runs tracing children and keeps their answers: one trace a source and shape, however often it is asked."""

import threading
from collections.abc import Sequence
from typing import Any

from kbtui.domain.candidate import source_sha
from kbtui.domain.codec import from_plain, to_plain
from kbtui.domain.device import DeviceSpec
from kbtui.domain.problem import Shape
from kbtui.evaluation.compile.compiler import ProblemInputs
from kbtui.evaluation.compile.specs import ShapeInputs, inputs_to_plain
from kbtui.evaluation.gate.failures import printable
from kbtui.evaluation.modelled.trace import CallTrace
from kbtui.evaluation.process import SandboxPolicy, WorkerFailure, Zygote, cpu_policy

ROLE = "kbtui.evaluation.modelled.role"
#: A trace takes a tenth of a second; one that takes this long has met something it cannot follow.
TRACE_TIMEOUT_S = 20.0
_MEMORY_BYTES = 4 << 30


class Untraced(str):
    """Why there is no trace of a source on a shape, in one line."""

    __slots__ = ()


class Tracer:
    """Traces of candidates of one problem. ``zygote`` must interpret. Safe to use from several threads."""

    def __init__(
        self, zygote: Zygote, inputs: ProblemInputs, device: DeviceSpec, timeout_s: float = TRACE_TIMEOUT_S
    ) -> None:
        self._zygote, self._inputs, self._device, self._timeout_s = zygote, inputs, to_plain(device), timeout_s
        self._policy: SandboxPolicy = cpu_policy(memory_bytes=_MEMORY_BYTES, cpu_s=int(timeout_s) + 20)
        self._known: dict[tuple[str, str], CallTrace | Untraced] = {}
        self._lock = threading.Lock()

    def warm_up(self, n_spares: int) -> None:
        """Keep confined children ready."""
        self._zygote.pool(ROLE, self._policy, n_spares)

    def traces(self, source: str, shapes: Sequence[Shape]) -> dict[str, CallTrace | Untraced]:
        """The traces of one source by shape name, where there is one, else the reason."""
        sha = source_sha(source)
        with self._lock:
            missing = [s for s in shapes if (sha, s.name) not in self._known]
        fresh = self._trace(source, missing) if missing else {}
        with self._lock:
            self._known.update(((sha, name), trace) for name, trace in fresh.items())
            return {s.name: self._known[sha, s.name] for s in shapes}

    def _trace(self, source: str, shapes: list[Shape]) -> dict[str, CallTrace | Untraced]:
        """One child for all shapes; after a timeout or a crash each shape gets a child of its own."""
        try:
            with self._zygote.spawn(ROLE, sandbox=self._policy) as worker:
                answers = worker.call(
                    "trace",
                    timeout_s=self._timeout_s,
                    payload=source.encode(),
                    device=self._device,
                    shapes=[self._plain(s) for s in shapes],
                ).value
        except WorkerFailure as failure:
            if len(shapes) == 1:
                return {shapes[0].name: Untraced(str(failure))}
            return {name: t for s in shapes for name, t in self._trace(source, [s]).items()}
        try:
            return {s.name: _answer(a) for s, a in zip(shapes, answers, strict=True)}
        except (TypeError, KeyError, ValueError, AttributeError):
            # The child ran a candidate, which may have forged the answer.
            return {s.name: Untraced("its tracing child answered nonsense") for s in shapes}

    def _plain(self, shape: Shape) -> dict[str, Any]:
        arguments = ShapeInputs(shape.name, self._inputs.arguments[shape.name])
        return {"inputs": inputs_to_plain(arguments), "context": self._inputs.contexts.get(shape.name)}


def _answer(answer: dict[str, Any]) -> CallTrace | Untraced:
    if "trace" in answer:
        trace: CallTrace = from_plain(CallTrace, answer["trace"])
        return trace
    return Untraced(printable(str(answer["failed"]))[:300])
