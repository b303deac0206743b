"""Nothing of a run outlives its engine."""

import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kbtui.errors import EngineError
from kbtui.evaluation.process import SandboxPolicy, WorkerDied, Zygote, cpu_policy

ROLES = Path(__file__).parent / "roles_under_test"
ROOT = Path(__file__).parents[2]
ENGINE = """
import sys
from pathlib import Path
from kbtui.evaluation.process import Zygote, cpu_policy
zygote = Zygote(Path(sys.argv[1]), interpret=False, env={"PYTHONPATH": sys.argv[2]} | %s)
print(zygote.pid, flush=True)
if %s:
    policy = cpu_policy(read=(Path(sys.argv[3]),))
    confined, free = (zygote.spawn("hostile_role", sandbox=p) for p in (policy, None))
    sleeper = free.call("start_sleeper", timeout_s=20).value
    confined.post("spin")
    print(confined.pid, free.pid, sleeper, flush=True)
import time
time.sleep(60)
"""


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def start_engine(tmp_path: Path, preload: str, spawns: bool) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", ENGINE % (preload, spawns), str(tmp_path / "z.log"), f"{ROOT}:{ROLES}", str(ROLES)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )


def pids_of(engine: "subprocess.Popen[str]", lines: int) -> list[int]:
    assert engine.stdout is not None
    return [int(pid) for _ in range(lines) for pid in engine.stdout.readline().split()]


def test_killing_the_engine_leaves_no_process_after_two_seconds(tmp_path: Path) -> None:
    with start_engine(tmp_path, "{'KBTUI_PRELOAD': 'none'}", True) as engine:
        pids = pids_of(engine, 2)
        assert len(pids) == 4
        assert all(map(is_alive, pids))
        engine.send_signal(signal.SIGKILL)
        assert within(2.0, lambda: not any(map(is_alive, pids)))
        assert list(tmp_path.glob("children-*"))
    with Zygote(tmp_path / "z.log", interpret=False, env={"KBTUI_PRELOAD": "none"}):
        assert [p.name.split("-")[1] for p in tmp_path.glob("children-*")] == [str(os.getpid())]


def test_killing_the_engine_while_torch_is_imported_leaves_no_process(tmp_path: Path) -> None:
    with start_engine(tmp_path, "{}", False) as engine:
        pids = pids_of(engine, 1)
        assert is_alive(pids[0])
        engine.send_signal(signal.SIGKILL)
        assert within(2.0, lambda: not is_alive(pids[0]))


def test_killing_the_zygote_ends_its_children(tmp_path: Path) -> None:
    env = {"PYTHONPATH": f"{ROOT}:{ROLES}", "KBTUI_PRELOAD": "none"}
    with Zygote(tmp_path / "z.log", interpret=False, env=env) as zygote:
        child = zygote.spawn("hostile_role", sandbox=cpu_policy(read=(ROLES,)))
        child.post("spin")
        os.kill(zygote.pid, signal.SIGKILL)
        assert within(2.0, lambda: not is_alive(child.pid))


def test_closing_the_zygote_ends_its_children_and_removes_their_files(tmp_path: Path) -> None:
    env = {"PYTHONPATH": f"{ROOT}:{ROLES}", "KBTUI_PRELOAD": "none"}
    with Zygote(tmp_path / "z.log", interpret=False, env=env) as zygote:
        child = zygote.spawn("hostile_role", sandbox=None)
        child.call("echo", timeout_s=10, text="")
    assert not is_alive(child.pid)
    assert [p.name for p in tmp_path.iterdir()] == ["z.log"]


@pytest.mark.parametrize("n_children", [60])
def test_descriptors_end_where_they_began(zygote: Zygote, confined: SandboxPolicy, n_children: int) -> None:
    def descriptors(pid: int | str) -> int:
        return len(os.listdir(f"/proc/{pid}/fd"))

    zygote.spawn("hostile_role", sandbox=confined).kill()
    gc.collect()  # what failed before may still hold sockets in its traceback
    before = descriptors("self"), descriptors(zygote.pid)
    for _ in range(n_children):
        with zygote.spawn("hostile_role", sandbox=confined) as child:
            child.call("echo", timeout_s=10, text="x")
    assert within(2.0, lambda: (descriptors("self"), descriptors(zygote.pid)) == before)


def test_a_killed_zygote_is_started_anew_for_the_next_child(tmp_path: Path) -> None:
    env = {"PYTHONPATH": f"{ROOT}:{ROLES}", "KBTUI_PRELOAD": "none"}
    with Zygote(tmp_path / "z.log", interpret=False, env=env) as zygote:
        for _ in range(2):
            child = zygote.spawn("hostile_role", sandbox=None)
            child.await_start()
            child.post("nap")
            os.kill(zygote.pid, signal.SIGKILL)
            with pytest.raises(WorkerDied, match="is gone"):
                child.result(timeout_s=10)
        assert zygote.spawn("hostile_role", sandbox=None).call("echo", timeout_s=10, text="again").value == "again"
        last = zygote.pid
    assert not is_alive(last)
    assert [p.name for p in tmp_path.iterdir()] == ["z.log"]


def test_a_zygote_that_cannot_start_says_so_once(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('broken torch')")
    with (
        Zygote(tmp_path / "z.log", interpret=False, env={"PYTHONPATH": f"{tmp_path}:{ROOT}"}) as zygote,
        pytest.raises(EngineError, match="broken torch"),
    ):
        zygote.spawn("hostile_role", sandbox=None)
