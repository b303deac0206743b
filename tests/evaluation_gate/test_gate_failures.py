"""What an exception in a candidate's call says of it: by where it was raised, never by what the candidate calls it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from softmax_problem import kernel

from kbtui.domain.verdict import Proof, Reason, Verdict, VerdictKind
from kbtui.evaluation.gate.failures import verdict_of_failure
from kbtui.evaluation.gate.interpreter import InterpreterGate
from kbtui.evaluation.process.child import describe
from kbtui.evaluation.process.failures import HarnessError, WorkerError
from kbtui.evaluation.process.places import Place, place_of
from kbtui.evaluation.process.worker import _worker_error
from kbtui.evaluation.roles.cuda_driver import DriverError

TRITON = "/somewhere/site-packages/triton/"
COMPILE, PASSES = (TRITON + "compiler/compiler.py", "compile"), (TRITON + "backends/nvidia/compiler.py", "make_ttgir")
BUILD, CACHE = (TRITON + "runtime/build.py", "_build"), (TRITON + "runtime/cache.py", "put")
LAUNCH, LOADS = (TRITON + "runtime/jit.py", "run"), (TRITON + "compiler/compiler.py", "_init_handles")
RUNS, METADATA = (TRITON + "compiler/compiler.py", "run"), (TRITON + "compiler/compiler.py", "launch_metadata")
PROGRAM = ("/usr/lib/python3.11/subprocess.py", "run")
OWN = ("/tmp/scratch/kernel_0123456789ab.py", "kernel_function")
WORDS = [
    "triton/runtime/build.py", "triton/runtime/cache.py", "nvidia/compiler.py", "PassManager::run failed",
    "DriverError", "InterpreterUnsupported", "HarnessError", "CUDA error", "out of memory",
]  # fmt: skip


def raised(error: Exception, *frames: tuple[str, str]) -> Exception:
    """The error, as if it had come through functions of these files, outermost first."""
    call: Callable[[], Any] = _raiser(error)
    for file, name in reversed(frames):
        scope: dict[str, Any] = {"inner": call}
        exec(compile(f"def {name}():\n    inner()\n", file, "exec"), scope)
        call = scope[name]
    try:
        call()
    except Exception as caught:
        return caught
    raise AssertionError("unreachable")


def _raiser(error: Exception) -> Callable[[], None]:
    def raise_it() -> None:
        raise error

    return raise_it


def judged(error: Exception) -> Verdict:
    """Through the wire, as a child tells it and the engine hears it."""
    return verdict_of_failure(_worker_error(describe(error)), 1, Proof.GPU, "64x1024")


@pytest.mark.parametrize(
    ("error", "frames", "kind", "reason"),
    [
        (RuntimeError("PassManager::run failed"), (OWN, LAUNCH, COMPILE, PASSES), "rejected", Reason.COMPILE_ERROR),
        (AssertionError("num_warps must be a power of 2"), (OWN, LAUNCH, PASSES), "rejected", Reason.COMPILE_ERROR),
        (ValueError("num_ctas > 1"), (OWN, LAUNCH, COMPILE), "rejected", Reason.COMPILE_ERROR),
        (MemoryError(), (OWN, LAUNCH, COMPILE), "rejected", Reason.OUT_OF_MEMORY),
        (RuntimeError("PassManager::run failed"), (OWN,), "rejected", Reason.RAISED),
        (RuntimeError("PassManager::run failed"), (OWN, LAUNCH, COMPILE, OWN), "rejected", Reason.RAISED),
        (RuntimeError("Triton Error [CUDA]: no image"), (OWN, LAUNCH, LOADS), "rejected", Reason.RAISED),
        (RuntimeError("Triton Error [CUDA]: no image"), (OWN, LAUNCH, RUNS, LOADS), "rejected", Reason.RAISED),
        (RuntimeError("an illegal memory access"), (OWN, LAUNCH, RUNS, LOADS), "rejected", Reason.CRASHED),
        (RuntimeError("an illegal memory access"), (OWN, LAUNCH, METADATA, LOADS), "rejected", Reason.CRASHED),
        (KeyError("nonsense"), (OWN, LAUNCH), "rejected", Reason.RAISED),
        (PermissionError("ptxas"), (OWN,), "rejected", Reason.SANDBOX_VIOLATION),
        (PermissionError("/bin/cat"), (OWN, PROGRAM), "rejected", Reason.SANDBOX_VIOLATION),
        (PermissionError("ptxas"), (OWN, LAUNCH, COMPILE, PASSES, PROGRAM), "unverified", Reason.HARNESS_FAILED),
        (PermissionError("cache"), (OWN, LAUNCH, COMPILE, CACHE), "unverified", Reason.HARNESS_FAILED),
        (FileNotFoundError("gcc"), (OWN, LAUNCH, LOADS, BUILD), "unverified", Reason.HARNESS_FAILED),
        (subprocess.CalledProcessError(1, "gcc"), (OWN, LAUNCH, BUILD), "unverified", Reason.HARNESS_FAILED),
        (DriverError("cuIpcOpenMemHandle_v2"), (), "unverified", Reason.HARNESS_FAILED),
    ],
)
def test_an_exception_is_judged_by_where_it_was_raised(
    error: Exception, frames: tuple[tuple[str, str], ...], kind: str, reason: Reason
) -> None:
    verdict = judged(raised(error, *frames))
    assert (verdict.kind, verdict.reason) == (kind, reason), verdict


@pytest.mark.parametrize("words", WORDS)
def test_words_of_the_line_that_raised_are_told_and_nothing_is_concluded_from_them(words: str, tmp_path: Path) -> None:
    kernel = tmp_path / "kernel_0123456789ab.py"
    kernel.write_text(f"def kernel_function():\n    assert not 1  # {words}\n", encoding="utf-8")
    scope: dict[str, Any] = {}
    exec(compile(kernel.read_text(), str(kernel), "exec"), scope)
    with pytest.raises(AssertionError) as caught:
        scope["kernel_function"]()
    verdict = judged(caught.value)
    assert (verdict.kind, verdict.reason, verdict.line) == (VerdictKind.REJECTED, Reason.RAISED, 2)
    assert verdict.detail == f"64x1024: AssertionError: {kernel.name}:2: assert not 1  # {words}"


@pytest.mark.parametrize("name", ["CompilationError", "CompileTimeAssertionFailure", "UnsupportedLanguageConstruct"])
def test_a_refusal_of_the_compiler_names_the_line_that_launched(name: str) -> None:
    error = type(name, (Exception,), {})("at 7:4: no")
    verdict = judged(raised(error, OWN, LAUNCH, COMPILE))
    assert (verdict.reason, verdict.line) == (Reason.COMPILE_ERROR, 2)
    assert verdict.detail == f"64x1024: {name}: at 7:4: no"


TEXT = st.text(max_size=30) | st.sampled_from(WORDS)


@given(st.sampled_from(WORDS) | st.from_regex(r"[A-Z][a-zA-Z]{0,20}", fullmatch=True), TEXT, st.lists(TEXT, max_size=3))
def test_no_name_and_no_words_of_a_candidate_make_its_failure_ours(name: str, message: str, notes: list[str]) -> None:
    error: Exception = type(name, (RuntimeError,), {"__module__": "kbtui.evaluation.roles.cuda_driver"})(message)
    for note in notes:
        error.add_note(note)
    assert judged(raised(error, OWN)).kind is VerdictKind.REJECTED


@given(st.dictionaries(st.sampled_from(["type", "message", "traceback", "line"]), st.none() | TEXT | st.integers()))
def test_an_answer_without_a_place_is_the_candidates_failure(described: dict[str, object]) -> None:
    for place in (None, [], "nowhere", 5):
        failure = _worker_error({**described, "place": place, "ours": 1})
        assert verdict_of_failure(failure, 1, Proof.GPU).kind is VerdictKind.REJECTED


FORGERIES = {
    "in the words of the harness": "raise RuntimeError('triton/runtime/build.py: nvidia/compiler.py')",
    "in the name of the harness": "raise type('DriverError', (RuntimeError,), {})('cuMemAlloc_v2')",
    "in the name of the interpreter": "raise type('InterpreterUnsupported', (Exception,), {})('x')",
}


@pytest.mark.parametrize("body", FORGERIES.values(), ids=FORGERIES)
def test_a_candidate_cannot_talk_itself_out_of_a_rejection(gate: InterpreterGate, body: str) -> None:
    verdict = gate.check(kernel(body), 1, seed=5)
    assert (verdict.kind, verdict.reason) == (VerdictKind.REJECTED, Reason.RAISED), verdict


def test_the_drivers_errors_are_the_harness_own() -> None:
    assert issubclass(DriverError, HarnessError)
    assert not WorkerError("DriverError", "", "", None).ours


THREE_PASSES = Path(__file__).parents[1] / "data/kernels/softmax_three_pass_rows.py"
#: Compiles as a launch in a candidate's child would; the compiler itself is not asked for a program.
LAUNCHES = """
import importlib.util, sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from kbtui.evaluation.process.places import place_of

spec = importlib.util.spec_from_file_location("candidate", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
signature = {"x_ptr": "*fp32", "y_ptr": "*fp32", "stride": "i32", "n_rows": "i32", "n_cols": "i32"}
constants = {"ROWS": 2, "BLOCK": 256}
signature |= dict.fromkeys(constants, "constexpr")
try:
    triton.compile(ASTSource(module.softmax_rows, signature, constants), target=GPUTarget("cuda", 80, 32))
except Exception as error:
    print(type(error).__name__, place_of(error))
"""


def launched(cache: Path) -> str:
    environment = {"PATH": "/usr/bin:/bin", "TRITON_CACHE_DIR": str(cache), "PYTHONPATH": ":".join(sys.path)}
    words = [sys.executable, "-c", LAUNCHES, str(THREE_PASSES)]
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60).stdout.strip()


def test_triton_itself_raises_where_its_places_are_looked_for(tmp_path: Path) -> None:
    """The names of Triton's files are written down here: another version may move them."""
    assert launched(tmp_path) == "RuntimeError compiler"
    (tmp_path / "a file").touch()
    assert launched(tmp_path / "a file/cache") == "NotADirectoryError tools"


class LostGpu:
    """A driver of Triton's whose GPU an earlier kernel has brought down."""

    def get_current_device(self) -> int:
        raise RuntimeError("Triton Error [CUDA]: an illegal memory access was encountered")


@pytest.mark.parametrize("asked", ["run", "launch_metadata"])
def test_a_fault_that_shows_as_triton_loads_a_kernel_is_no_refusal_of_its_compiler(
    asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A launch asks the compiled kernel for both, and whichever comes first loads it."""
    from triton.compiler import compiler

    loaded_next = object.__new__(compiler.CompiledKernel)
    loaded_next.module = loaded_next._run = None
    monkeypatch.setattr(compiler, "driver", SimpleNamespace(active=LostGpu()))
    monkeypatch.setattr(compiler.knobs.runtime, "launch_enter_hook", lambda _: None)
    with pytest.raises(RuntimeError) as caught:
        loaded_next.run() if asked == "run" else loaded_next.launch_metadata((1, 1, 1), 0)
    assert judged(caught.value).reason is Reason.CRASHED


def test_what_is_raised_nowhere_special_is_raised_elsewhere() -> None:
    assert place_of(ValueError("never raised")) is Place.ELSEWHERE
