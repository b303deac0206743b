"""What a child with a CUDA context can do, and what it cannot: the same deeds as without one, in the wider sandbox."""

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbtui.evaluation.devices import resolve_auto
from kbtui.evaluation.devices.cuda import PRIMER_ROLE
from kbtui.evaluation.process import SandboxPolicy, Worker, WorkerDied, WorkerError, WorkerTimeout, Zygote, cuda_policy

HERE = Path(__file__).parent
ROLES = HERE.parent / "evaluation_process" / "roles_under_test"
ROLE = "cuda_hostile_role"
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(resolve_auto() != "cuda:0", reason="no NVIDIA GPU here"),
]


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> SandboxPolicy:
    cache = tmp_path_factory.mktemp("driver")
    path = ":".join(map(str, (HERE.parents[1], HERE, ROLES, *os.environ.get("PYTHONPATH", "").split(":"))))
    env = (("PYTHONPATH", path), ("KBTUI_DEVICE", "cuda"), ("TRITON_CACHE_DIR", str(cache)))
    return cuda_policy(read=(HERE, ROLES, cache), memory_bytes=16 << 30, env=env)


@pytest.fixture(scope="module")
def zygote(policy: SandboxPolicy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    log = tmp_path_factory.mktemp("isolation") / "zygote.log"
    with Zygote(log, interpret=False, env=dict(policy.env)) as started:
        with started.spawn(PRIMER_ROLE, sandbox=None) as primer:
            primer.call("prime", timeout_s=60, cache=dict(policy.env)["TRITON_CACHE_DIR"])
        yield started


@pytest.fixture(scope="module")
def child(zygote: Zygote, policy: SandboxPolicy) -> Iterator[Worker]:
    with zygote.spawn(ROLE, sandbox=policy) as worker:
        worker.await_start()
        missing = [p for p in worker.protections if not p.enforced]
        if missing:
            pytest.skip(f"this kernel cannot enforce: {missing}")
        yield worker


def refused(worker: Worker, method: str, **params: object) -> None:
    with pytest.raises(WorkerError) as caught:
        worker.call(method, timeout_s=10, **params)
    assert caught.value.type in ("PermissionError", "OSError", "BlockingIOError"), caught.value.message


def test_kernels_launch_once_the_sandbox_is_locked(child: Worker) -> None:
    assert child.call("launch", timeout_s=10).value == 8.0


def test_another_process_memory_opens_by_its_handle(child: Worker, zygote: Zygote) -> None:
    with zygote.spawn("kbtui.evaluation.roles.referee", sandbox=None) as referee:
        made = referee.call("make_arena", timeout_s=30, n_bytes=1 << 20)
        assert child.call("open_arena", timeout_s=10, payload=made.payload, n_bytes=made.value).value >= 0


def test_nothing_outside_the_list_is_read(child: Worker, tmp_path: Path) -> None:
    key = tmp_path / ".ssh" / "id_ed25519"
    key.parent.mkdir()
    key.write_text("secret")
    for path in (key, key.parent, Path.home(), Path("/etc/passwd"), Path("/tmp"), Path("/var/log")):
        refused(child, "read_file", path=str(path))


def test_neither_the_engine_nor_another_candidate_is_read_or_written(
    child: Worker, zygote: Zygote, policy: SandboxPolicy, tmp_path: Path
) -> None:
    (tmp_path / "HEAD").write_text("ref: refs/heads/main")
    with zygote.spawn("hostile_role", sandbox=policy) as other:
        other.call("write_scratch", timeout_s=10, n_bytes=10)
        for path in (other.scratch / "big", other.birth.log, tmp_path / "HEAD", Path(f"/proc/{os.getpid()}/environ")):
            refused(child, "read_file", path=str(path))
        refused(child, "write_file", path=str(other.scratch / "mine"))
    for path in (tmp_path / "new", Path(dict(policy.env)["TRITON_CACHE_DIR"]) / "new", Path("/dev/shm/new")):
        refused(child, "write_file", path=str(path))


@pytest.mark.parametrize(
    "deed", ["connect", "unix_socket", "execute", "fork", "fork_with_clone3", "leave_group", "disarm"]
)
def test_no_socket_program_fork_or_way_out_of_its_group(child: Worker, deed: str) -> None:
    refused(child, deed)


def test_no_pathname_socket_is_reached(child: Worker, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as agent:
        agent.bind(str(tmp_path / "agent"))
        refused(child, "reach", path=str(tmp_path / "agent"), how="socketpair")


def test_no_other_process_is_signalled_or_traced(child: Worker, zygote: Zygote) -> None:
    with zygote.spawn("hostile_role", sandbox=None) as other:
        other.await_start()
        refused(child, "signal", pid=other.pid)
        refused(child, "trace", pid=other.pid)
        refused(child, "limit", pid=other.pid)
        refused(child, "signal_by_owner", pid=other.pid, how="fcntl")
        assert other.call("echo", timeout_s=5, text="alive").value == "alive"


@pytest.mark.parametrize("method", ["spin", "nap", "spin_on_device"])
def test_no_loop_outlives_its_deadline(zygote: Zygote, policy: SandboxPolicy, method: str) -> None:
    with zygote.spawn(ROLE, sandbox=policy) as worker:
        worker.await_start()
        began = time.monotonic()
        with pytest.raises(WorkerTimeout):
            worker.call(method, timeout_s=0.5)
        assert time.monotonic() - began < 4


def test_memory_disk_and_output_end(zygote: Zygote, policy: SandboxPolicy) -> None:
    with zygote.spawn(ROLE, sandbox=policy) as worker:
        with pytest.raises(WorkerError) as caught:
            worker.call("take_device_memory", timeout_s=20)
        assert caught.value.type == "OutOfMemoryError"
        with pytest.raises(WorkerError) as caught:
            worker.call("hog", timeout_s=20, n_bytes=1 << 36)
        assert caught.value.type == "MemoryError"
        with pytest.raises((WorkerError, WorkerDied)):
            worker.call("flood", timeout_s=30, n_bytes=1 << 28)
