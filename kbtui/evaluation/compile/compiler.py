"""Effects: compiles candidates in confined children, several at a time; a source is compiled once."""

import os
import signal
import threading
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from kbtui.domain.candidate import source_sha
from kbtui.domain.codec import from_plain, to_plain
from kbtui.domain.device import DeviceSpec
from kbtui.domain.problem import Problem, ShapeRole
from kbtui.domain.verdict import Proof, Reason, Verdict, VerdictKind, rejected, unverified
from kbtui.errors import EngineError, UsageError
from kbtui.evaluation.compile.last_words import failed_pass, last_words
from kbtui.evaluation.compile.published import Launchers, says_why
from kbtui.evaluation.compile.report import CompileReport
from kbtui.evaluation.compile.specs import Argument, ShapeInputs, inputs_from_plain, inputs_to_plain
from kbtui.evaluation.compile.tools import assembler_programs
from kbtui.evaluation.gate.failures import lost, printable
from kbtui.evaluation.process import (
    SandboxPolicy,
    WorkerDied,
    WorkerError,
    WorkerFailure,
    WorkerNotStarted,
    WorkerTimeout,
    Zygote,
    cpu_policy,
)
from kbtui.evaluation.process.leftovers import remove_tree
from kbtui.room import lack_of_room

_ROLE = "kbtui.evaluation.compile.role"
_INPUTS_ROLE = "kbtui.evaluation.compile.inputs"
_STAGE = 0
_DESCRIBE_TIMEOUT_S = 120.0
#: A kernel tuned over a hundred configurations leaves some tens of MB.
_MAX_COMPILED_BYTES = 256 << 20
_MAX_SAID = 300
#: What a compilation without room to write looks like.
_ON_A_FULL_DISK = frozenset({Reason.COMPILE_ERROR, Reason.RAISED, Reason.CRASHED, Reason.HARNESS_FAILED})
#: Written by Triton on the way and not read by a launch.
_INTERMEDIATE = (".ttir", ".ttgir", ".llir", ".source")


@dataclass(frozen=True, slots=True)
class ProblemInputs:
    """Arguments of a call on every shape of a problem by its name, and what a ModelNew needs there (plain)."""

    arguments: Mapping[str, tuple[Argument, ...]]
    contexts: Mapping[str, dict[str, Any]]


def describe_inputs(zygote: Zygote, problem: Problem) -> ProblemInputs:
    """Ask the problem's own ``make_inputs`` in a trusted child. Raises UsageError where the reference fails."""
    with zygote.spawn(_INPUTS_ROLE, sandbox=None) as worker:
        try:
            reply = worker.call("describe", timeout_s=_DESCRIBE_TIMEOUT_S, problem=to_plain(problem))
        except WorkerError as error:
            raise UsageError(
                f"the reference of {problem.spec.name} raised {error.told}", "mend reference.py"
            ) from error
        except WorkerFailure as error:
            raise UsageError(f"the reference of {problem.spec.name} failed: {error}", "run it by itself") from error
    described = [inputs_from_plain(plain) for plain in reply.value["inputs"]]
    return ProblemInputs({i.shape: i.arguments for i in described}, reply.value["contexts"])


class Compiler:
    """Compiles candidates for one device and problem.

    ``inputs`` as from ``describe_inputs``, or arguments by shape name. ``cache_dir`` gets one directory a candidate.
    ``launchers``: also build the C code a real launch needs (on a machine with the driver).
    """

    def __init__(
        self,
        zygote: Zygote,
        device: DeviceSpec,
        problem: Problem,
        input_specs: ProblemInputs | Mapping[str, tuple[Argument, ...]],
        cache_dir: Path,
        workers: int,
        *,
        launchers: bool = False,
        timeout_s: float = 60.0,
        memory_bytes: int = 8 << 30,
    ) -> None:
        self._zygote, self._device, self._problem = zygote, device, problem
        self._inputs = input_specs if isinstance(input_specs, ProblemInputs) else ProblemInputs(input_specs, {})
        self._cache_dir = cache_dir.resolve()
        self._timeout_s, self._memory_bytes = timeout_s, memory_bytes
        self._launchers = Launchers(zygote, self._cache_dir / "launchers") if launchers else None
        self._lock = threading.Lock()
        self._running: Counter[str] = Counter()
        self._failed: set[str] = set()
        self._futures: dict[tuple[str, tuple[str, ...]], Future[CompileReport]] = {}
        self._threads = ThreadPoolExecutor(max_workers=max(1, workers), thread_name_prefix="compile")

    def submit(self, source: str, shapes: tuple[str, ...] | None = None) -> "Future[CompileReport]":
        """Compile what the candidate launches on these shapes (default: all that are timed). Never blocks.

        The same source and shapes give the same future, unless its compilation failed and not by the candidate's fault.
        The report's verdict is never raised.
        """
        names = self.timed_shapes if shapes is None else shapes
        key = (source_sha(source), names)
        with self._lock:
            if key not in self._futures or _is_excused(self._futures[key]):
                self._futures[key] = self._threads.submit(self._compile, source, names)
            return self._futures[key]

    @property
    def timed_shapes(self) -> tuple[str, ...]:
        return tuple(s.name for s in self._problem.spec.shapes_of(ShapeRole.TUNE))

    def cache_of(self, source: str) -> Path:
        """TRITON_CACHE_DIR for this candidate: only its own compile children ever write there."""
        return self._cache_dir / source_sha(source)[:24]

    def close(self) -> None:
        """Drop what waits, let what runs end. Idempotent."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        if self._launchers is not None:
            self._launchers.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _compile(self, source: str, names: tuple[str, ...]) -> CompileReport:
        cache = self.cache_of(source)
        with self._lock:
            self._running[str(cache)] += 1
        report = self._reported(source, names, cache)
        self._tidy(cache, report.verdict.ok)
        return replace(report, cache=str(cache)) if report.verdict.ok else self._excused(report, cache)

    def _excused(self, report: CompileReport, cache: Path) -> CompileReport:
        """On a full disk a compilation fails in many words. Whose own files fill it is not excused: they are gone."""
        if report.verdict.reason not in _ON_A_FULL_DISK or cache.exists():
            return report
        lack = lack_of_room(self._cache_dir)
        return _failed(f"{lack}; make room, then try again") if lack else report

    def _reported(self, source: str, names: tuple[str, ...], cache: Path) -> CompileReport:
        try:
            cache.mkdir(parents=True, exist_ok=True)
            return self._in_living_child(source, names, cache)
        except WorkerFailure as failure:
            return CompileReport(_verdict_of(failure), (), 0.0)
        except (EngineError, OSError) as error:
            return _failed(str(error))

    def _tidy(self, cache: Path, ok: bool) -> None:
        """Nothing stays of a candidate that failed: it may have filled its directory to the brim."""
        with self._lock:
            self._running[str(cache)] -= 1
            if not ok:
                self._failed.add(str(cache))
            # A child that compiles the same source for other shapes still reads what it has just written.
            if self._running[str(cache)] == 0:
                del self._running[str(cache)]
                if str(cache) in self._failed:
                    self._failed.discard(str(cache))
                    remove_tree(cache)
                else:
                    _drop_intermediate(cache)

    def _in_living_child(self, source: str, names: tuple[str, ...], cache: Path) -> CompileReport:
        """A second child where the first was lost together with the process that starts them."""
        try:
            return self._in_child(source, names, cache)
        except EngineError:
            return self._in_child(source, names, cache)
        except WorkerFailure as failure:
            if not lost(failure):
                raise
            return self._in_child(source, names, cache)

    def _in_child(self, source: str, names: tuple[str, ...], cache: Path) -> CompileReport:
        with self._zygote.spawn(_ROLE, sandbox=self._policy(cache)) as worker:
            reply = worker.call(
                "compile",
                timeout_s=self._timeout_s,
                payload=source.encode(),
                device=to_plain(self._device),
                inputs=[inputs_to_plain(ShapeInputs(name, self._inputs.arguments[name])) for name in names],
                context=self._inputs.contexts.get(names[0]) if names else None,
                allowed=list(self._problem.spec.allowed_ops),
            )
            log_tail = worker.log_tail()
        try:
            report: CompileReport = from_plain(CompileReport, reply.value["report"])
            needed = tuple({"types": d["types"], "descriptors": d["descriptors"]} for d in reply.value["launchers"])
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            detail = f"its compile child answered nonsense ({error})"
            return CompileReport(rejected(Reason.SANDBOX_VIOLATION, _STAGE, Proof.NONE, detail), (), 0.0)
        if (report.verdict.stage, report.verdict.proof) != (_STAGE, Proof.NONE):
            detail = f"its compile child claims stage {report.verdict.stage} of the gate, which it does not run"
            return CompileReport(rejected(Reason.SANDBOX_VIOLATION, _STAGE, Proof.NONE, detail), (), 0.0)
        report = replace(report, verdict=_in_words(report.verdict, log_tail))
        return self._with_launchers(report, needed, cache)

    def _with_launchers(self, report: CompileReport, needed: tuple[dict[str, Any], ...], cache: Path) -> CompileReport:
        if self._launchers is None or not report.verdict.ok:
            return report
        try:
            self._launchers.publish(needed, cache)
        except WorkerFailure as failure:
            return replace(report, verdict=unverified(Reason.HARNESS_FAILED, _STAGE, Proof.NONE, says_why(failure)))
        return report

    def _policy(self, cache: Path) -> SandboxPolicy:
        policy = cpu_policy(
            write=(cache,),
            exec=assembler_programs(),
            memory_bytes=self._memory_bytes,
            cpu_s=int(self._timeout_s * 4),
            env=(("TRITON_CACHE_DIR", str(cache)),),
        )
        return replace(policy, scratch_bytes=_MAX_COMPILED_BYTES)


def _is_excused(compiled: "Future[CompileReport]") -> bool:
    """Whether it failed and not by the candidate's fault; also where nobody foresaw how."""
    if not compiled.done() or compiled.cancelled():
        return False
    return compiled.exception() is not None or compiled.result().verdict.kind is VerdictKind.UNVERIFIED


def _failed(why: str) -> CompileReport:
    return CompileReport(unverified(Reason.HARNESS_FAILED, _STAGE, Proof.NONE, why), (), 0.0)


def _in_words(verdict: Verdict, log_tail: str) -> Verdict:
    """With the compiler's pass where that failed without a reason, and nothing that a terminal would obey."""
    failed = failed_pass(log_tail) if verdict.reason is Reason.COMPILE_ERROR else None
    return replace(verdict, detail=printable(verdict.detail + (f", in its pass {failed}" if failed else "")))


def _verdict_of(failure: WorkerFailure) -> Verdict:
    match failure:
        case WorkerNotStarted():
            return unverified(Reason.HARNESS_FAILED, _STAGE, Proof.NONE, str(failure))
        case WorkerTimeout():
            detail = (
                f"importing and compiling it took over {failure.timeout_s:g} s; use smaller tiles or less unrolling"
            )
            return rejected(Reason.TIMED_OUT, _STAGE, Proof.NONE, detail)
        case WorkerDied() if lost(failure):
            return unverified(Reason.HARNESS_FAILED, _STAGE, Proof.NONE, str(failure))
        case WorkerDied() if failure.why.startswith("broke the protocol"):
            return rejected(Reason.SANDBOX_VIOLATION, _STAGE, Proof.NONE, f"importing and compiling it: {failure}")
        case WorkerDied() if "memory" in failure.why:
            return rejected(Reason.OUT_OF_MEMORY, _STAGE, Proof.NONE, f"its compilation was {failure.why}")
        case WorkerDied() if failure.signal == signal.SIGABRT and (said := last_words(failure.log_tail)):
            detail = f"Triton's compiler gave up on it: {printable(said)[:_MAX_SAID]}"
            return rejected(Reason.COMPILE_ERROR, _STAGE, Proof.NONE, detail)
        case WorkerDied():
            return rejected(Reason.CRASHED, _STAGE, Proof.NONE, f"importing and compiling it: {failure}")
        case WorkerError():
            return unverified(Reason.HARNESS_FAILED, _STAGE, Proof.NONE, f"the compile child raised {failure}")
        case _:
            return unverified(Reason.HARNESS_FAILED, _STAGE, Proof.NONE, str(failure))


def _drop_intermediate(cache: Path) -> None:
    # os.walk does not follow links: what lies here was written by a candidate's code.
    for folder, _, names in os.walk(cache):
        for name in names:
            if name.endswith(_INTERMEDIATE):
                Path(folder, name).unlink(missing_ok=True)
