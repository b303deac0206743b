"""The C code of a launch, built by a trusted child and laid beside a candidate's kernels."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.problem import Problem
from kbtui.domain.verdict import Reason
from kbtui.evaluation.compile.compiler import Compiler, ProblemInputs
from kbtui.evaluation.process import WorkerError, Zygote

BUILDER = "kbtui.evaluation.compile.launchers"


@pytest.fixture(scope="module")
def linking_zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """A library of libcuda's name to link against; nothing of it is called."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("gcc is not installed")
    folder = tmp_path_factory.mktemp("libcuda")
    (folder / "empty.c").write_text("")
    subprocess.run([gcc, "-shared", "-o", folder / "libcuda.so.1", folder / "empty.c"], check=True)
    with Zygote(folder / "zygote.log", interpret=False, env={"TRITON_LIBCUDA_PATH": str(folder)}) as started:
        yield started


def test_launchers_lie_beside_the_kernels_and_are_built_once(
    linking_zygote: Zygote, softmax: Problem, softmax_inputs: ProblemInputs, tmp_path: Path
) -> None:
    assert softmax.kernel_source is not None
    device = DATA_SHEETS["h200"]
    built = []
    with Compiler(linking_zygote, device, softmax, softmax_inputs, tmp_path, workers=2, launchers=True) as compiler:
        for text in ("", "# another\n"):
            report = compiler.submit(softmax.kernel_source + text, ("4096x16384",)).result(timeout=120)
            assert report.verdict.ok, report.verdict
            names = {p.name.split(".")[0] for p in Path(report.cache).glob("*/*.so")}
            assert names == {"__triton_launcher", "cuda_utils"}
            built.append(sorted(p.stat().st_mtime_ns for p in (tmp_path / "launchers").glob("*/*.so")))
    assert len(built[0]) == 2
    assert built[0] == built[1]


def test_without_the_drivers_library_it_is_our_failure(
    torch_zygote: Zygote, softmax: Problem, softmax_inputs: ProblemInputs, tmp_path: Path
) -> None:
    if Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has a driver")
    assert softmax.kernel_source is not None
    device = DATA_SHEETS["h200"]
    with Compiler(torch_zygote, device, softmax, softmax_inputs, tmp_path, workers=1, launchers=True) as compiler:
        verdict = compiler.submit(softmax.kernel_source, ("4096x16384",)).result(timeout=120).verdict
    assert verdict.reason is Reason.HARNESS_FAILED
    assert "libcuda" in verdict.detail


@pytest.mark.parametrize("types", [["i32; system()"], ["*fp32", 'x"'], "i32 i32", [7]])
def test_what_is_not_a_type_never_reaches_the_compiler(linking_zygote: Zygote, tmp_path: Path, types: object) -> None:
    with linking_zygote.spawn(BUILDER, sandbox=None) as worker, pytest.raises(WorkerError) as caught:
        worker.call("build", timeout_s=30, cache=str(tmp_path), types=types, descriptors=[])
    assert caught.value.type == "ValueError"
    assert not any(tmp_path.iterdir())
