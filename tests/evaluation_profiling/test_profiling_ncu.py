import os
import select
from collections.abc import Sequence
from pathlib import Path

import pytest

from kbtui.domain.problem import Problem, Shape, ShapeRole
from kbtui.evaluation.profiling import metrics, permission
from kbtui.evaluation.profiling.ncu import NcuRun, Profiler, run_bounded
from kbtui.problems import load_problem

PAGE = (Path(__file__).parents[1] / "data" / "ncu" / "softmax_one_pass_synthetic.csv").read_text()


class FakeNcu:
    """Answers collecting and exporting as ncu would; ``outputs`` are for the collecting runs, None writes a report."""

    def __init__(self, *outputs: str | None, page: str = PAGE, status: int | None = 1) -> None:
        self.outputs, self.page, self.status = list(outputs), page, status
        self.commands: list[list[str]] = []

    def __call__(self, command: Sequence[str], timeout_s: float, cwd: Path) -> NcuRun:
        self.commands.append(list(command))
        if "--import" in command:
            return NcuRun(0, self.page)
        said = self.outputs.pop(0)
        if said is not None:
            return NcuRun(self.status, said)
        Path(command[list(command).index("--export") + 1]).write_bytes(b"report")
        return NcuRun(0, "==PROF== Report\n")


@pytest.fixture
def problem() -> Problem:
    return load_problem("softmax")


@pytest.fixture
def shape(problem: Problem) -> Shape:
    return problem.spec.shapes_of(ShapeRole.TUNE)[0]


def _profiler(run: FakeNcu, tmp_path: Path) -> Profiler:
    return Profiler(0, tmp_path, counters=permission.Counters(tmp_path / "ncu", None), run=run)


def test_counters_come_with_the_report_that_ncus_own_viewer_opens(
    problem: Problem, shape: Shape, tmp_path: Path
) -> None:
    profile, attached = _profiler(FakeNcu(None), tmp_path).profile(problem, "source", shape, 0, ["one_pass"], 134.9)
    assert profile.not_profiled is None
    assert profile.kernels == ("one_pass",)
    assert profile.stalls[0][0] == "long_scoreboard"
    assert profile.notes == ()
    assert [a.name for a in attached] == ["ncu-4096x16384.csv", "ncu-4096x16384.ncu-rep"]
    assert list(tmp_path.iterdir()) == []


def test_clocks_are_left_alone_and_only_the_marked_range_is_profiled(
    problem: Problem, shape: Shape, tmp_path: Path
) -> None:
    ncu = FakeNcu(None)
    _profiler(ncu, tmp_path).profile(problem, "source", shape, 0)
    collecting = " ".join(ncu.commands[0])
    assert "--clock-control none" in collecting
    assert "--profile-from-start off" in collecting


def test_what_does_not_fit_is_said(problem: Problem, shape: Shape, tmp_path: Path) -> None:
    few = PAGE.replace("268,502,016", "1,502,016")
    profile, _ = _profiler(FakeNcu(None, page=few), tmp_path).profile(problem, "s", shape, 0, ["two_pass"], 900.0)
    notes = " | ".join(profile.notes)
    assert "254 MB went through device memory where the problem needs 537 MB" in notes
    assert "not the candidate's own ran too: one_pass" in notes
    assert "did not run here: two_pass" in notes
    assert "134.9 us under the profiler against 900.0 us measured" in notes


def test_a_metric_this_ncu_lacks_is_left_out_and_asked_no_more(problem: Problem, shape: Shape, tmp_path: Path) -> None:
    ncu = FakeNcu(f"==ERROR== Failed to find metric {metrics.TENSOR_PCT}\n", None, None)
    profiler = _profiler(ncu, tmp_path)
    assert profiler.profile(problem, "s", shape, 0)[0].not_profiled is None
    assert profiler.profile(problem, "s", shape, 0)[0].not_profiled is None
    asked = [metrics.TENSOR_PCT in " ".join(c) for c in ncu.commands if "--import" not in c]
    assert asked == [True, False, False]


def test_no_permission_is_a_state_with_its_remedy_and_is_met_once(
    problem: Problem, shape: Shape, tmp_path: Path
) -> None:
    ncu = FakeNcu("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n")
    first = _profiler(ncu, tmp_path)
    assert "NVreg_RestrictProfilingToAdminUsers=0" in (first.profile(problem, "s", shape, 0)[0].not_profiled or "")
    profile, attached = _profiler(ncu, tmp_path).profile(problem, "s", shape, 0)
    assert "ERR_NVGPUCTRPERM" in (profile.not_profiled or "")
    assert attached == ()
    assert len(ncu.commands) == 1


@pytest.mark.parametrize(
    ("said", "status", "reason"),
    [
        ("", None, "did not end in"),
        ("==ERROR== An error occurred while trying to profile: driver resource was unavailable\n", 1, "another tool"),
        ("Traceback\nRuntimeError: boom\n", 1, "status 1: RuntimeError: boom"),
        ("", 9, "it said nothing"),
    ],
)
def test_every_failure_is_a_reason(
    problem: Problem, shape: Shape, tmp_path: Path, said: str, status: int | None, reason: str
) -> None:
    profile, _ = _profiler(FakeNcu(said, status=status), tmp_path).profile(problem, "s", shape, 0)
    assert reason in (profile.not_profiled or "")


def test_a_report_without_kernels_is_not_a_profile(problem: Problem, shape: Shape, tmp_path: Path) -> None:
    header = "\n".join(PAGE.splitlines()[:4]) + "\n"
    profile, _ = _profiler(FakeNcu(None, page=header), tmp_path).profile(problem, "s", shape, 0)
    assert profile.not_profiled == "ncu saw no kernel in the profiled range"


def test_without_a_gpu_or_ncu_the_reason_is_known_beforehand(problem: Problem, shape: Shape, tmp_path: Path) -> None:
    nothing = permission.counters({"PATH": ""}, params=tmp_path / "absent" / "params")
    assert nothing.why_not == "no NVIDIA GPU on this machine"
    profile, _ = Profiler(0, tmp_path, counters=nothing).profile(problem, "s", shape, 0)
    assert profile.not_profiled == "no NVIDIA GPU on this machine"


def _fake_ncu(folder: Path) -> None:
    (folder / "ncu").write_text("#!/bin/sh\n")
    (folder / "ncu").chmod(0o755)


def test_admin_only_counters_are_told_before_ncu_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake_ncu(tmp_path)
    params = tmp_path / "params"
    params.write_text("ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n")
    monkeypatch.setattr(permission, "_is_admin", lambda: False)
    found = permission.counters({"PATH": str(tmp_path)}, params)
    assert found.ncu == tmp_path / "ncu"
    assert "RmProfilingAdminOnly: 1" in (found.why_not or "")
    params.write_text("RmProfilingAdminOnly: 0\n")
    assert permission.counters({"PATH": str(tmp_path)}, params).why_not is None


def test_a_slice_of_a_gpu_has_no_counters(tmp_path: Path) -> None:
    _fake_ncu(tmp_path)
    (tmp_path / "params").write_text("")
    environ = {"PATH": str(tmp_path), "CUDA_VISIBLE_DEVICES": "MIG-0aa1"}
    assert "MIG" in (permission.counters(environ, tmp_path / "params").why_not or "")


def test_a_command_that_hangs_is_killed_with_what_it_started(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    script = f"sleep 60 & echo $! > {mark}; echo started; wait"
    ran = run_bounded(["/bin/sh", "-c", script], 1.0, tmp_path)
    assert ran.status is None
    assert _ends(int(mark.read_text()))


def _ends(pid: int) -> bool:
    """Whether a process is gone, or goes within seconds: a kill takes a moment to be done."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], 5.0)[0])
    finally:
        os.close(handle)


def test_a_command_that_ends_gives_its_status_and_output(tmp_path: Path) -> None:
    ran = run_bounded(["/bin/sh", "-c", "echo out; echo err >&2; exit 3"], 30.0, tmp_path)
    assert ran.status == 3
    assert ran.output == "out\nerr\n"
