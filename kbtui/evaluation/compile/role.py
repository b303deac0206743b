"""Effects: the role of the confined child that imports one candidate and compiles every kernel it launches.

Nothing runs on a GPU: see ``pretend`` and ``recorder``. What it says is the candidate's word on itself and decides
only the candidate's own fate; the compiled kernels go into a directory no other candidate reads.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kbtui.domain.codec import from_plain, to_plain
from kbtui.domain.device import DeviceSpec
from kbtui.domain.verdict import Proof, Reason, Verdict, rejected, verified
from kbtui.evaluation import candidate_module
from kbtui.evaluation.compile import faults
from kbtui.evaluation.compile.pretend import build, pretended_gpu
from kbtui.evaluation.compile.recorder import Recorder
from kbtui.evaluation.compile.report import CompileReport
from kbtui.evaluation.compile.specs import ShapeInputs, inputs_from_plain
from kbtui.evaluation.model_context import ModelContext, context_from_plain
from kbtui.evaluation.roles.guard import Watch

STAGE = 0
#: Tensors here have sizes and no values; what a candidate makes on the host on its way is judged where it runs.
_NOWHERE, _ELSEWHERE = "meta", " on "
_DETAIL_CHARS = 300


def make(fds: tuple[int, ...]) -> dict[str, Callable[..., Any]]:
    del fds
    return {"compile": compile_candidate}


def compile_candidate(
    payload: bytes,
    device: dict[str, Any],
    inputs: list[dict[str, Any]],
    context: dict[str, Any] | None,
    allowed: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Call the candidate once a shape; returns a CompileReport as plain values, and what its launchers need.

    ``allowed``: operations of torch that may compute. Others are seen here on every timed shape, without a GPU.
    """
    started = time.monotonic()
    target: DeviceSpec = from_plain(DeviceSpec, device)
    recorder = Recorder(target, Path(os.environ["TRITON_CACHE_DIR"]))
    recorder.install()
    shapes = [inputs_from_plain(plain) for plain in inputs]
    watch = Watch(_NOWHERE, allowed)
    verdict = _call_all(payload.decode(), shapes, context_from_plain(context), target, recorder, watch)
    report = CompileReport(
        verdict,
        tuple(recorder.resources.values()),
        time.monotonic() - started,
        tuple(recorder.launches),
    )
    return {"report": to_plain(report), "launchers": list(recorder.launchers.values())}


def _call_all(
    source: str,
    shapes: list[ShapeInputs],
    context: ModelContext,
    device: DeviceSpec,
    recorder: Recorder,
    watch: Watch,
) -> Verdict:
    with pretended_gpu(device):
        try:
            entry = candidate_module.load(source, context)
        except Exception as error:
            return faults.judge(error, "import")
        for inputs in shapes:
            recorder.shape = inputs.shape
            n_before = len(recorder.launches)
            try:
                arguments = [build(argument) for argument in inputs.arguments]
                with watch:
                    entry(*arguments)
            except Exception as error:
                return faults.judge(error, inputs.shape)
            if len(recorder.launches) == n_before:
                detail = f"no Triton kernel was launched on {inputs.shape}; launch one with kernel[grid](...)"
                return rejected(Reason.NO_TRITON_KERNEL, STAGE, Proof.NONE, detail)
            computed = [name for name in watch.forbidden if _ELSEWHERE not in name]
            if computed:
                detail = f"{inputs.shape}: computes with {', '.join(dict.fromkeys(computed))}"
                return rejected(Reason.FORBIDDEN_OP, STAGE, Proof.NONE, detail[:_DETAIL_CHARS])
    return verified(STAGE, Proof.NONE, _summary(recorder))


def _summary(recorder: Recorder) -> str:
    kernels = {(r.kernel, r.registers, r.shared_bytes) for r in recorder.resources.values()}
    most = max((r.registers for r in recorder.resources.values()), default=0)
    return f"compiled {len(kernels)} kernels for sm_{recorder.device.arch}, at most {most} registers a thread"
