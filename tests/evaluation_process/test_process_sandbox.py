"""What a confined child cannot do, tried from inside it; each refusal has a control that shows the deed is possible."""

import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbtui.errors import UsageError
from kbtui.evaluation.process import SandboxPolicy, Worker, WorkerDied, WorkerError, Zygote, probe, switched_on
from kbtui.evaluation.process.seccomp import MACHINES, build_filter, build_lock

ROLE = "hostile_role"
ROLES = Path(__file__).parent / "roles_under_test"
ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is Linux's")


@pytest.fixture
def worker(zygote: Zygote, confined: SandboxPolicy) -> Iterator[Worker]:
    with zygote.spawn(ROLE, sandbox=confined) as spawned:
        spawned.await_start()
        missing = [p for p in spawned.protections if not p.enforced]
        if missing:
            pytest.skip(f"this kernel cannot enforce: {missing}")
        yield spawned


@pytest.fixture
def free_worker(zygote: Zygote) -> Iterator[Worker]:
    with zygote.spawn(ROLE, sandbox=None) as spawned:
        yield spawned


def refused(worker: Worker, method: str, **params: object) -> str:
    with pytest.raises(WorkerError) as caught:
        worker.call(method, timeout_s=10, **params)
    assert caught.value.type in ("PermissionError", "OSError", "BlockingIOError"), caught.value.message
    return caught.value.message


def test_a_secret_cannot_be_read(worker: Worker, free_worker: Worker, tmp_path: Path) -> None:
    secret = tmp_path / "id_ed25519"
    secret.write_text("secret")
    assert free_worker.call("read_file", timeout_s=5, path=str(secret)).value == "secret"
    assert "Permission denied" in refused(worker, "read_file", path=str(secret))


def test_the_engines_memory_and_environment_cannot_be_read(worker: Worker) -> None:
    for name in ("environ", "maps", "mem"):
        refused(worker, "read_file", path=f"/proc/{os.getpid()}/{name}")


def test_nothing_outside_the_scratch_can_be_written(worker: Worker, free_worker: Worker, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    assert free_worker.call("write_file", timeout_s=5, path=str(victim)).value == 1
    refused(worker, "write_file", path=str(victim))
    refused(worker, "truncate", path=str(victim))
    refused(worker, "chmod", path=str(victim))
    assert victim.read_text() == "x"
    assert worker.call("write_scratch", timeout_s=5, n_bytes=1000).value == 1000


def test_a_file_cannot_outgrow_its_limit(worker: Worker, confined: SandboxPolicy) -> None:
    assert "too large" in refused(worker, "write_scratch", n_bytes=confined.file_bytes + (1 << 20))


def test_no_socket_opens(worker: Worker, free_worker: Worker) -> None:
    assert free_worker.call("unix_socket", timeout_s=5).value is None
    refused(worker, "connect")
    refused(worker, "unix_socket")


def test_unix_sockets_open_until_the_child_is_warm_where_the_policy_says(
    zygote: Zygote, confined: SandboxPolicy
) -> None:
    with zygote.spawn(ROLE, sandbox=replace(confined, unix_sockets=True)) as worker:
        assert worker.call("socket_while_warming", timeout_s=5).value == "opened"
        refused(worker, "unix_socket")
        refused(worker, "connect")


@pytest.mark.parametrize("how", ["connect", "sendto", "sendmsg", "bind", "socketpair"])
def test_a_socket_kept_from_the_warm_up_leads_nowhere(
    zygote: Zygote, confined: SandboxPolicy, tmp_path: Path, how: str
) -> None:
    """The path of an agent's socket cannot be judged by a filter, so what leads to any path is gone."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listener.bind(str(tmp_path / "agent"))
    with listener, zygote.spawn(ROLE, sandbox=replace(confined, unix_sockets=True)) as worker:
        assert worker.call("reach", timeout_s=5, path=str(tmp_path / "agent"), how="kept").value is None
        refused(worker, "reach", path=str(tmp_path / "agent"), how=how)
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.recv(1)


def test_no_program_starts(worker: Worker, free_worker: Worker) -> None:
    assert free_worker.call("execute", timeout_s=5).value == 0
    refused(worker, "execute")


def test_only_the_listed_program_starts(zygote: Zygote, confined: SandboxPolicy) -> None:
    allowed = replace(confined, exec=(Path("/bin/true"), Path("/lib64"), Path("/lib")))
    with zygote.spawn(ROLE, sandbox=allowed) as worker:
        assert worker.call("execute", timeout_s=5).value == 0
        refused(worker, "start_sleeper")


def test_no_fork_but_threads(worker: Worker) -> None:
    refused(worker, "fork")
    refused(worker, "fork_with_clone3")
    assert worker.call("thread", timeout_s=5).value == [True]


def test_no_signal_or_limit_reaches_another_process(worker: Worker, free_worker: Worker) -> None:
    refused(worker, "signal", pid=free_worker.pid)
    refused(worker, "limit", pid=free_worker.pid)
    assert free_worker.call("echo", timeout_s=5, text="alive").value == "alive"


def test_the_child_cannot_slip_out_of_its_group_or_its_death_signal(worker: Worker) -> None:
    refused(worker, "leave_group")
    refused(worker, "disarm")


def test_memory_is_limited(zygote: Zygote, confined: SandboxPolicy) -> None:
    with zygote.spawn(ROLE, sandbox=confined) as worker:
        assert worker.call("hog", timeout_s=10, n_bytes=1 << 20).value == 1 << 20
        with pytest.raises(WorkerError) as caught:
            worker.call("hog", timeout_s=10, n_bytes=1 << 30)
        assert caught.value.type == "MemoryError"


def test_shared_memory_is_limited_too(zygote: Zygote, confined: SandboxPolicy) -> None:
    with zygote.spawn(ROLE, sandbox=confined) as worker, pytest.raises(WorkerDied) as caught:
        worker.call("hog_shared", timeout_s=20)
    assert "512 MiB of memory" in caught.value.why


def test_many_files_are_limited_together(zygote: Zygote, confined: SandboxPolicy) -> None:
    tight = replace(confined, scratch_bytes=20 << 20)
    with zygote.spawn(ROLE, sandbox=tight) as worker, pytest.raises(WorkerDied) as caught:
        worker.call("fill_disk", timeout_s=20, file_bytes=1 << 20)
    assert "20 MiB of disk" in caught.value.why


def test_the_environment_holds_no_secrets(worker: Worker, free_worker: Worker) -> None:
    assert free_worker.call("environment", timeout_s=5).value["SECRET_TOKEN"] == "s3cret"
    environment = worker.call("environment", timeout_s=5).value
    assert "SECRET_TOKEN" not in environment
    assert environment["HOME"] == environment["TMPDIR"] == str(worker.scratch)


def test_the_probe_names_each_layer() -> None:
    assert {p.name for p in probe()} == {"limits", "landlock", "seccomp", "lock"}


def test_the_switch_is_on_off_or_an_error() -> None:
    assert switched_on({})
    assert not switched_on({"KBTUI_SANDBOX": "off"})
    with pytest.raises(UsageError, match="neither on nor off"):
        switched_on({"KBTUI_SANDBOX": "maybe"})


@given(st.sampled_from(sorted(MACHINES)), st.integers(1, 1 << 22), st.booleans(), st.booleans(), st.booleans())
def test_every_jump_of_the_filter_stays_inside_it(
    machine: str, pid: int, may_exec: bool, sockets: bool, memfd: bool
) -> None:
    every = build_filter(MACHINES[machine], pid, may_exec=may_exec, unix_sockets=sockets, memfd=memfd)
    for program in (every, build_lock(MACHINES[machine])):
        steps = [program[i : i + 8] for i in range(0, len(program), 8)]
        for place, step in enumerate(steps):
            code, if_true, if_false = step[0], step[2], step[3]
            if code & 0x07 == 0x05:
                assert place + 1 + max(if_true, if_false) < len(steps)
        assert steps[-1][0] == 0x06
        assert len(steps) < 4096


@pytest.mark.parametrize("how", ["fcntl", "ioctl"])
def test_no_signal_reaches_another_process_through_a_descriptors_owner(
    worker: Worker, zygote: Zygote, how: str
) -> None:
    with zygote.spawn(ROLE, sandbox=None) as victim:
        victim.await_start()
        refused(worker, "signal_by_owner", pid=victim.pid, how=how)
        assert victim.call("echo", timeout_s=5, text="alive").value == "alive"


def test_no_limit_can_be_changed_for_root_could_raise_it(worker: Worker, free_worker: Worker) -> None:
    assert free_worker.call("change_limit", timeout_s=5).value is None
    with pytest.raises(WorkerError):
        worker.call("change_limit", timeout_s=5)


def test_what_the_process_was_started_with_is_gone_from_its_memory(worker: Worker, free_worker: Worker) -> None:
    assert "s3cret" in free_worker.call("first_environment", timeout_s=5).value
    assert "s3cret" not in worker.call("first_environment", timeout_s=5).value


def test_threads_are_limited(zygote: Zygote, confined: SandboxPolicy) -> None:
    with zygote.spawn(ROLE, sandbox=confined) as worker, pytest.raises(WorkerDied, match="threads"):
        worker.call("many_threads", timeout_s=20)


def test_folders_nested_without_end_are_noticed_and_removed(zygote: Zygote, confined: SandboxPolicy) -> None:
    with zygote.spawn(ROLE, sandbox=confined) as worker:
        with pytest.raises(WorkerDied, match="of disk"):
            worker.call("deep_folders", timeout_s=20, n=3000, nap_s=30)
        home = worker.birth.home
    assert not home.exists()


def test_a_folder_it_may_write_counts_as_its_disk(zygote: Zygote, confined: SandboxPolicy, tmp_path: Path) -> None:
    tight = replace(confined, scratch_bytes=5 << 20, write=(*confined.write, tmp_path))
    (tmp_path / "filled").write_bytes(bytes(6 << 20))
    with zygote.spawn(ROLE, sandbox=tight) as worker, pytest.raises(WorkerDied, match="of disk"):
        worker.call("nap", timeout_s=20)


def test_with_the_switch_off_it_still_has_its_scratch_and_variables(tmp_path: Path, confined: SandboxPolicy) -> None:
    env = {"PYTHONPATH": f"{ROOT}:{ROLES}", "KBTUI_PRELOAD": "none", "KBTUI_SANDBOX": "off", "SECRET_TOKEN": "s3cret"}
    with (
        Zygote(tmp_path / "z.log", interpret=False, env=env) as unconfined,
        unconfined.spawn(ROLE, sandbox=replace(confined, env=(("TRITON_CACHE_DIR", "/there"),))) as worker,
    ):
        environment = worker.call("environment", timeout_s=5).value
        assert environment["HOME"] == str(worker.scratch)
        assert environment["TRITON_CACHE_DIR"] == "/there"
        assert "SECRET_TOKEN" not in environment
        assert [p.enforced for p in worker.protections] == [False]


def test_nothing_of_the_users_environment_lies_in_a_childs_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, found = "ghp_0123456789abcdefNotARealToken", "torch_0123456789_may_be_found"
    for name in ("GITHUB_TOKEN", "KBTUI_LLM_API_KEY", "NVIDIA_API_KEY"):
        monkeypatch.setenv(name, token)
    monkeypatch.setenv("TORCH_LOOKED_FOR", found)
    env = {"PYTHONPATH": f"{ROOT}:{ROLES}", "KBTUI_PRELOAD": "none"}
    with (
        Zygote(tmp_path / "z.log", interpret=False, env=env) as clean,
        clean.spawn(ROLE, sandbox=None) as worker,
    ):
        assert worker.call("find_in_memory", timeout_s=20, backwards=token[::-1]).value == 0
        assert worker.call("find_in_memory", timeout_s=20, backwards=found[::-1]).value > 0


def test_neither_other_candidates_nor_the_store_can_be_read(
    worker: Worker, zygote: Zygote, confined: SandboxPolicy, tmp_path: Path
) -> None:
    (tmp_path / "kernels.git").mkdir()
    (tmp_path / "kernels.git" / "HEAD").write_text("ref: refs/heads/main")
    with zygote.spawn(ROLE, sandbox=confined) as other:
        other.call("write_scratch", timeout_s=5, n_bytes=10)
        for path in (other.scratch / "big", other.birth.log, tmp_path / "kernels.git" / "HEAD", Path.home()):
            refused(worker, "read_file", path=str(path))
        refused(worker, "write_file", path=str(other.scratch / "mine"))


def test_no_other_process_can_be_traced_or_looked_into(worker: Worker, free_worker: Worker) -> None:
    free_worker.await_start()
    refused(worker, "trace", pid=free_worker.pid)
    refused(worker, "trace", pid=os.getpid())
    refused(worker, "read_memory_of", pid=free_worker.pid)
    assert free_worker.call("echo", timeout_s=5, text="alive").value == "alive"
