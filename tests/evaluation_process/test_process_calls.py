"""What a call into a child gives back, and how it fails."""

import os
import re
import signal
import time
from collections.abc import Iterator

import pytest

from kbtui.errors import EngineError
from kbtui.evaluation.process import (
    SandboxPolicy,
    Worker,
    WorkerDied,
    WorkerError,
    WorkerNotStarted,
    WorkerTimeout,
    Zygote,
)
from kbtui.evaluation.process.places import Place

ROLE = "hostile_role"


@pytest.fixture
def worker(zygote: Zygote, confined: SandboxPolicy) -> Iterator[Worker]:
    with zygote.spawn(ROLE, sandbox=confined) as spawned:
        yield spawned


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_call_returns_its_value(worker: Worker) -> None:
    assert worker.call("echo", timeout_s=5, text="größer").value == "größer"


def test_bytes_travel_both_ways(worker: Worker) -> None:
    sent = bytes(range(256)) * 5000
    reply = worker.call("reverse", timeout_s=5, payload=sent)
    assert reply.value == len(sent)
    assert reply.payload == sent[::-1]


def test_empty_bytes_are_not_none(worker: Worker) -> None:
    assert worker.call("reverse", timeout_s=5, payload=b"").payload == b""


def test_posted_calls_answer_in_order(worker: Worker) -> None:
    for text in ("one", "two"):
        worker.post("echo", text=text)
    assert [worker.result(5).value, worker.result(5).value] == ["one", "two"]


def test_every_spawn_is_a_fresh_process(zygote: Zygote, confined: SandboxPolicy) -> None:
    with zygote.spawn(ROLE, sandbox=confined) as one, zygote.spawn(ROLE, sandbox=confined) as two:
        pids = {one.call("pid", timeout_s=5).value, two.call("pid", timeout_s=5).value}
        assert pids == {one.pid, two.pid}
        assert os.getpid() not in pids


def test_a_descriptor_passes_into_the_child(zygote: Zygote, confined: SandboxPolicy) -> None:
    readable, writable = os.pipe()
    os.write(writable, b"through the pipe")
    with zygote.spawn(ROLE, sandbox=confined, fds=(readable,)) as worker:
        assert worker.call("read_fd", timeout_s=5).value == "through the pipe"
    os.close(readable)
    os.close(writable)


def test_an_exception_in_the_child_is_told_and_the_child_lives(worker: Worker) -> None:
    with pytest.raises(WorkerError) as caught:
        worker.call("raise_error", timeout_s=5)
    assert (caught.value.type, caught.value.message) == ("ValueError", "no such shape")
    assert "_raise_error" in caught.value.traceback_tail
    assert worker.call("echo", timeout_s=5, text="still here").value == "still here"


def test_an_exception_without_words_says_where_it_arose(worker: Worker) -> None:
    with pytest.raises(WorkerError) as caught:
        worker.call("bare_assert", timeout_s=5, head_dim=1024)
    assert (caught.value.type, caught.value.message) == ("AssertionError", "")
    assert re.fullmatch(r"AssertionError: hostile_role\.py:\d+: assert head_dim in \{64, 128, 256\}", str(caught.value))


@pytest.mark.parametrize(
    "how",
    [
        "text_that_answers_otherwise", "text_that_raises", "traceback_that_raises", "name_that_raises",
        "class_that_lies",
    ],
)  # fmt: skip
def test_an_exception_of_a_hostile_class_is_told_and_the_child_lives(worker: Worker, how: str) -> None:
    with pytest.raises(WorkerError) as caught:
        worker.call("raise_hostile", timeout_s=5, how=how)
    assert (caught.value.type, caught.value.ours, caught.value.place) == ("HostileError", False, Place.ELSEWHERE)
    assert len(caught.value.message) <= 2000
    assert worker.call("echo", timeout_s=5, text="still here").value == "still here"


def test_a_role_that_does_not_exist_says_so(zygote: Zygote, confined: SandboxPolicy) -> None:
    with (
        zygote.spawn("no_such_role", sandbox=confined) as worker,
        pytest.raises(WorkerNotStarted, match="no_such_role"),
    ):
        worker.call("echo", timeout_s=5, text="")


def test_a_crash_names_its_signal(worker: Worker) -> None:
    with pytest.raises(WorkerDied) as caught:
        worker.call("abort", timeout_s=5)
    assert caught.value.signal == signal.SIGABRT
    assert "SIGABRT" in str(caught.value)
    assert not is_alive(worker.pid)


def test_leaving_early_names_the_status(worker: Worker) -> None:
    with pytest.raises(WorkerDied) as caught:
        worker.call("leave", timeout_s=5, status=7)
    assert (caught.value.signal, caught.value.status) == (None, 7)


@pytest.mark.parametrize("method", ["nap", "spin"])
def test_a_hang_is_killed_at_its_deadline(worker: Worker, method: str) -> None:
    started = time.monotonic()
    with pytest.raises(WorkerTimeout) as caught:
        worker.call(method, timeout_s=0.3)
    assert (caught.value.method, caught.value.timeout_s) == (method, 0.3)
    assert time.monotonic() - started < 3
    assert not is_alive(worker.pid)


def test_a_killed_child_is_gone_and_its_scratch_too(worker: Worker) -> None:
    worker.call("echo", timeout_s=5, text="")
    scratch = worker.scratch
    assert scratch.is_dir()
    worker.kill()
    assert not is_alive(worker.pid)
    assert not scratch.exists()


def test_a_flood_of_output_stops_at_the_file_limit(worker: Worker) -> None:
    with pytest.raises((WorkerError, WorkerDied)):
        worker.call("flood", timeout_s=30, n_bytes=1 << 30)
    assert worker.birth.policy is not None
    if worker.alive:
        assert worker.birth.log.stat().st_size <= worker.birth.policy.file_bytes
        assert len(worker.log_tail()) <= 4000


def test_a_forged_frame_ends_the_child_without_harm(worker: Worker) -> None:
    with pytest.raises(WorkerDied) as caught:
        worker.call("forge", timeout_s=5)
    assert "protocol" in caught.value.why


def test_spares_are_warmed_and_then_taken(zygote: Zygote, confined: SandboxPolicy) -> None:
    zygote.pool(ROLE, confined, 2)
    try:
        spare = zygote.spawn(ROLE, sandbox=confined)
        assert spare.call("warmed", timeout_s=5).value == [0]
        spare.kill()
    finally:
        zygote.pool(ROLE, confined, 0)


def test_the_first_calls_of_a_spares_life_can_be_made_ahead(zygote: Zygote, confined: SandboxPolicy) -> None:
    begun: list[tuple[Worker, str]] = []

    def begin(worker: Worker) -> None:
        begun.append((worker, worker.call("echo", timeout_s=20, text="ahead").value))

    zygote.pool(ROLE, confined, 0)
    pool = zygote._pools[(ROLE, confined)]
    with pool._lock:  # those of earlier tests began without these calls
        assert pool._lock.wait_for(lambda: not pool._n_started, 20)
    zygote.drop_spares(ROLE, confined)
    zygote.pool(ROLE, confined, 1, finish=begin)
    try:
        spare = zygote.spawn(ROLE, sandbox=confined)
        assert (spare, "ahead") in begun
        assert spare.call("echo", timeout_s=5, text="mine").value == "mine"
        spare.kill()
    finally:
        zygote.pool(ROLE, confined, 0)
        zygote._pools[(ROLE, confined)].finish = lambda _: None


def test_spares_are_let_go_without_waiting_for_their_ends(zygote: Zygote, confined: SandboxPolicy) -> None:
    zygote.pool(ROLE, confined, 2)
    pool, until = zygote._pools[(ROLE, confined)], time.monotonic() + 60
    spares: tuple[Worker, ...] = ()
    # A start that fails is not tried again by itself: ask more than once, as whoever spawns does.
    while len(spares) < 2 and time.monotonic() < until:
        zygote.pool(ROLE, confined, 2)
        with pool._lock:
            pool._lock.wait_for(lambda: len(pool._spares) == 2, 5)
            spares = tuple(pool._spares)
    assert len(spares) == 2
    zygote.drop_spares(ROLE, confined)
    with zygote.quiet():
        assert not any(spare.alive for spare in spares)
    assert zygote.spawn(ROLE, sandbox=confined).kill() is None


def test_a_closed_zygote_refuses_in_one_line(tmp_path: object, zygote: Zygote) -> None:
    other = Zygote(zygote.log_path.parent / "other.log", interpret=False, env={"KBTUI_PRELOAD": "none"})
    other.close()
    with pytest.raises(EngineError, match="gone"):
        other.spawn(ROLE, sandbox=None)


def test_more_bytes_than_the_engine_would_keep_are_refused_unread(worker: Worker) -> None:
    with pytest.raises(WorkerDied, match="broke the protocol"):
        worker.call("attach", timeout_s=10, n_bytes=65 << 20)


def test_a_child_that_hangs_up_is_told_from_one_that_was_killed(worker: Worker) -> None:
    with pytest.raises(WorkerDied, match="closed its connection"):
        worker.call("hang_up", timeout_s=10)


def test_waiting_for_a_core_does_not_count_towards_the_deadline(zygote: Zygote, confined: SandboxPolicy) -> None:
    """Six children on one core: each needs 0.4 s of it, so the last ends after about 2.4 s."""
    core = min(os.sched_getaffinity(zygote.pid))
    workers = [zygote.spawn(ROLE, sandbox=confined) for _ in range(6)]
    try:
        for worker in workers:
            worker.await_start()
            os.sched_setaffinity(worker.pid, {core})
            worker.post("compute", cpu_s=0.4)
        for worker in workers:
            worker.result(timeout_s=1.2)
    finally:
        for worker in workers:
            worker.kill()


def state(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0]


def test_a_paused_child_stands_still_and_goes_on_where_it_was(worker: Worker) -> None:
    worker.await_start()
    worker.pause()
    assert worker.stands_still(5)
    assert state(worker.pid) == "T"
    worker.post("echo", text="later")
    worker.go_on()
    assert worker.result(5).value == "later"


def test_a_paused_child_can_be_killed(worker: Worker) -> None:
    worker.await_start()
    worker.pause()
    assert worker.stands_still(5)
    worker.kill()
    assert not is_alive(worker.pid)


def test_what_warms_up_stands_still_while_it_is_quiet_and_is_a_spare_afterwards(
    zygote: Zygote, confined: SandboxPolicy
) -> None:
    zygote.pool("slow_role", confined, 2)
    pool = zygote._pools[("slow_role", confined)]
    try:
        with pool._lock:
            assert pool._lock.wait_for(lambda: pool._n_forking, 5)
        with zygote.quiet():
            paused = tuple(pool._paused)
            assert paused
            assert {state(w.pid) for w in paused} == {"T"}
            assert not pool._spares
        spare = zygote.spawn("slow_role", sandbox=confined)
        assert spare.call("warmed", timeout_s=5).value == 1
        spare.kill()
    finally:
        zygote.pool("slow_role", confined, 0)


def test_a_buried_child_is_gone_once_it_is_quiet(zygote: Zygote, confined: SandboxPolicy) -> None:
    worker = zygote.spawn(ROLE, sandbox=confined)
    worker.await_start()
    zygote.bury(worker)
    with zygote.quiet():
        assert not is_alive(worker.pid)
        assert not worker.birth.home.exists()
