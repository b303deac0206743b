"""Effects: the gate under Triton's interpreter, on the CPU: same checks, smaller shapes, proof ``interpreter``.

What the interpreter cannot do (inline assembly, libdevice, bfloat16 products, tensor descriptors of some kinds) is
no fault of the candidate: it is unverified, with the reason.
"""

import contextlib
import os
import re
import threading
from dataclasses import replace

from kbtui.domain.device import DATA_SHEETS, DeviceSpec
from kbtui.domain.problem import Problem, ShapeRole
from kbtui.domain.verdict import Proof, Reason, Verdict, VerdictKind, unverified
from kbtui.errors import EngineError, UsageError
from kbtui.evaluation.family import family_of
from kbtui.evaluation.gate.clients import CandidateClient, RefereeClient, RefereeError
from kbtui.evaluation.gate.failures import verdict_of_failure
from kbtui.evaluation.gate.plan import n_elements
from kbtui.evaluation.gate.runner import run_stage
from kbtui.evaluation.memfd import sealed_memfd
from kbtui.evaluation.process import SandboxPolicy, Worker, Zygote, cpu_policy
from kbtui.evaluation.process.failures import WorkerError, WorkerFailure

REFEREE_ROLE = "kbtui.evaluation.roles.referee"
CANDIDATE_ROLE = "kbtui.evaluation.roles.candidate"
ARENA_BYTES = 512 << 20
_BY_INTERPRETER = {Reason.RAISED, Reason.CRASHED, Reason.WRONG_VALUES, Reason.NAN_MISMATCH, Reason.COMPILE_ERROR}
_UNSUPPORTED = (
    (re.compile(r"\binline_asm_elementwise\b"), "inline assembly"),
    (re.compile(r"\blibdevice\b"), "libdevice functions"),
    (re.compile(r"\bdot_scaled\b|float8|fp8"), "8-bit products"),
    (re.compile(r"\bgluon\b"), "Gluon"),
)


class InterpreterGate:
    """The gate of one problem under the interpreter. One check at a time; safe to call from several threads.

    ``zygote`` must have been started with ``interpret=True``; ``sandbox`` confines candidates (default: no devices,
    no network, no files but Python's). ``chip`` is what the candidate sees of a GPU.
    """

    def __init__(
        self,
        zygote: Zygote,
        problem: Problem,
        *,
        chip: DeviceSpec = DATA_SHEETS["a100"],
        sandbox: SandboxPolicy | None = None,
        call_timeout_s: float = 60.0,
    ) -> None:
        self.problem = problem
        self.sandbox = sandbox or cpu_policy()
        self.chip = chip
        self._zygote, self._call_timeout_s = zygote, call_timeout_s
        self._memfd = sealed_memfd("kbtui-arena", ARENA_BYTES)
        self._referee: Worker | None = None
        self._lock = threading.Lock()

    def open(self) -> str | None:
        """Start the referee, run the reference once; returns the problem's family. Raises UsageError if it raises."""
        spec = self.problem.spec
        shapes = spec.shapes_of(ShapeRole.PROXY) or spec.shapes
        smallest = min(shapes, key=n_elements)
        try:
            referee = self._client()
            referee.prepare(smallest, spec.distributions[0], [0])
        except RefereeError as error:
            raise _reference_raised(self.problem, error) from None
        self._zygote.pool(CANDIDATE_ROLE, self.sandbox, 1)
        if spec.family:
            return spec.family
        with contextlib.suppress(RefereeError):
            return family_of(referee.operations(smallest))
        return None

    def check(self, source: str, stage: int, seed: int) -> Verdict:
        """The verdict of one stage (1, 2 or 4) in a fresh child. Never raises for the candidate's or our failure."""
        with self._lock:
            verdict = self._try(source, stage, seed)
            if verdict.reason not in (Reason.REFERENCE_FAILED, Reason.HARNESS_FAILED):
                return verdict
            self._drop_referee()
            return self._try(source, stage, seed)

    def _try(self, source: str, stage: int, seed: int) -> Verdict:
        try:
            return self._check(source, stage, seed)
        except RefereeError as error:
            return unverified(Reason.REFERENCE_FAILED, stage, Proof.INTERPRETER, str(error)[:300])
        except EngineError as error:
            return unverified(Reason.HARNESS_FAILED, stage, Proof.INTERPRETER, str(error)[:300])

    def close(self) -> None:
        self._drop_referee()
        if self._memfd >= 0:
            os.close(self._memfd)
            self._memfd = -1

    def _check(self, source: str, stage: int, seed: int) -> Verdict:
        referee = self._client()
        with self._zygote.spawn(CANDIDATE_ROLE, sandbox=self.sandbox, fds=(self._memfd,)) as worker:
            candidate = CandidateClient(worker, self._call_timeout_s)
            try:
                candidate.pretend(self.chip)
                candidate.load(source)
            except WorkerFailure as failure:
                return excuse(verdict_of_failure(failure, stage, Proof.INTERPRETER), source, self.problem)
            verdict = run_stage(referee, candidate, self.problem.spec, stage, seed, Proof.INTERPRETER)
        return excuse(verdict, source, self.problem)

    def _client(self) -> RefereeClient:
        client = RefereeClient(self._living_referee(), self.problem.spec)
        return client

    def _living_referee(self) -> Worker:
        if self._referee is None or not self._referee.alive:
            self._referee = self._zygote.spawn(REFEREE_ROLE, sandbox=None, fds=(self._memfd,))
            RefereeClient(self._referee, self.problem.spec).open(self.problem)
        return self._referee

    def _drop_referee(self) -> None:
        if self._referee is not None:
            self._referee.kill()
            self._referee = None


def excuse(verdict: Verdict, source: str, problem: Problem) -> Verdict:
    """A failure the interpreter may have caused itself is unverified."""
    if verdict.kind is not VerdictKind.REJECTED or verdict.reason not in _BY_INTERPRETER:
        return verdict
    why = _unsupported(source, problem, verdict)
    if why is None:
        return verdict
    detail = f"the interpreter does not do {why}: {verdict.detail}"
    return replace(verdict, kind=VerdictKind.UNVERIFIED, reason=Reason.INTERPRETER_UNSUPPORTED, detail=detail)


def _unsupported(source: str, problem: Problem, verdict: Verdict) -> str | None:
    for pattern, what in _UNSUPPORTED:
        if pattern.search(source):
            return what
    if re.search(r"\btl\.dot\b", source) and (problem.spec.dtype == "bfloat16" or "bfloat16" in source):
        return "bfloat16 products"
    if "InterpreterError" in verdict.detail and "'int' object has no attribute" in verdict.detail:
        return "integers that are tensors where they are compiled"
    if "NotImplementedError" in verdict.detail or "not supported in interpreter" in verdict.detail:
        return "this operation"
    return None


def _reference_raised(problem: Problem, error: RefereeError) -> UsageError:
    failure = error.failure
    what = failure.told if isinstance(failure, WorkerError) else str(failure)
    first = next(iter(what.strip().splitlines()), "no message")
    return UsageError(f"the reference of {problem.spec.name} raised {first[:200]}", f"correct {problem.path}")
