"""A contest of the six benchmarks on the device's own code, with the CPU standing in for the GPU."""

import importlib.util
from collections.abc import Iterator

import pytest
from host_device import CHIP, host_opened
from softmax_problem import CHEATS, HONEST, kernel, make_problem

from benchmarks.six.contest import Contestants, Entrant, Terms, hold
from benchmarks.six.marks import Marks
from kbtui.domain.candidate import Candidate, Origin
from kbtui.domain.verdict import Proof
from kbtui.evaluation.devices import cuda_sides
from kbtui.evaluation.devices.cuda import CudaDevice
from kbtui.evaluation.gate import runner
from kbtui.evaluation.process import Zygote
from kbtui.scheduler.state import Tried

SLOW = kernel("for _ in range(3):\n    out = launch(x, torch.empty_like(x))\nreturn out")


@pytest.fixture
def device(compiling_zygote: Zygote, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CudaDevice]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(runner.AGE_S, Proof.GPU, (0.5, 1.0))
        patch.setattr(cuda_sides, "CANDIDATE_ROLE", "host_candidate")
        patch.setattr(cuda_sides, "BASELINE_ROLE", "host_baseline")
        with host_opened(make_problem(rows=2), tmp_path_factory.mktemp("contest"), compiling_zygote) as opened:
            device = CudaDevice.__new__(CudaDevice)
            device.spec, device._lock, device._opened = CHIP, opened.lock, opened
            yield device


def entrant(name: str, source: str) -> Entrant:
    return Entrant(Tried(Candidate(name, name, (), Origin("playbook", name), name, name), "commit", 1, 1), source)


@pytest.mark.skipif(importlib.util.find_spec("liger_kernel") is not None, reason="Liger-Kernel is installed")
def test_the_gate_the_baselines_and_the_turns_of_a_contest(device: CudaDevice) -> None:
    shape = make_problem(rows=2).spec.shapes[0].name
    wrong, best, first = entrant("c0003", CHEATS["zeros"][0]), entrant("c0002", HONEST["plain"]), entrant("c0001", SLOW)
    terms = Terms(shape, 3, 1, 2, "a test", ("eager", "liger", "copy"))
    marks = Marks(say=lambda _: None)
    held, kernels = hold(device, Contestants((wrong, best, first), first, best), (), terms, marks)
    assert (held.champion, [name for name, _ in held.refused]) == ("c0002", ["c0003"])
    assert [a.name for a in held.against if a.ratio] == ["first", "eager", "copy"]
    assert {a.n_processes for a in held.against if a.ratio} == {2}
    assert "liger_kernel is not installed" in next(a.error for a in held.against if a.name == "liger")  # type: ignore[operator]
    assert [k.role for k in kernels] == ["champion", "first", "draft"]
    assert held.verdict.startswith("verified by gpu")
    phases = [name for name, _ in marks.phases]
    assert phases[0] == "ready baselines"
    assert phases.count("gate") == phases.count("gate's last question") == 2
    assert phases[-5:] == [
        "start of process pair 1", "turns of process pair 1", "start of process pair 2", "turns of process pair 2",
        "last judgements",
    ]  # fmt: skip
