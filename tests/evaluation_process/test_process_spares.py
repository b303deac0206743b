"""A pool of spares whose children fail in every way: it counts right, leaves nobody waiting and no child behind."""

import threading
from collections.abc import Iterator
from typing import cast

import pytest

from kbtui.errors import EngineError
from kbtui.evaluation.process.failures import WorkerDied
from kbtui.evaluation.process.spares import Spares
from kbtui.evaluation.process.worker import Worker

FORESEEN = {
    "the zygote is gone": EngineError("the process that starts children is gone"),
    "no room left": OSError(28, "No space left on device"),
    "the child died": WorkerDied(signal_number=9, status=None, log_tail=""),
}
UNFORESEEN = {"a defect": RuntimeError("nobody foresaw this"), "the interpreter ends": SystemExit(1)}


class Child:
    """As far as a pool knows a child. ``fails``: what its start raises."""

    def __init__(self, fails: BaseException | None = None) -> None:
        self.alive, self.fails = True, fails

    def await_start(self) -> None:
        if self.fails is not None:
            raise self.fails

    def kill(self) -> None:
        self.alive = False

    def pause(self) -> None: ...

    def go_on(self) -> None: ...

    def stands_still(self, timeout_s: float) -> bool:
        return True


class Nursery:
    """Starts children; the first ``n_bad`` of them fail by ``error`` at one point of their way."""

    def __init__(self, at: str, error: BaseException, n_bad: int) -> None:
        self.at, self.error, self.n_bad = at, error, n_bad
        self.children: list[Child] = []
        self.n_begun = 0

    def start(self) -> Worker:
        self.n_begun += 1
        bad = self.n_begun <= self.n_bad
        if bad and self.at == "fork":
            raise self.error
        self.children.append(Child(self.error if bad and self.at == "start" else None))
        return cast(Worker, self.children[-1])

    def finish(self, worker: Worker) -> None:
        if self.at == "first calls" and self.n_begun <= self.n_bad:
            raise self.error


@pytest.fixture
def uncaught(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Names of the errors that ended a thread."""
    seen: list[str] = []
    before = set(threading.enumerate())
    monkeypatch.setattr(threading, "excepthook", lambda told: seen.append(told.exc_type.__name__))
    yield seen
    joined(before)


def joined(before: set[threading.Thread]) -> None:
    """Once the threads begun since have ended, and told why."""
    for thread in set(threading.enumerate()) - before:
        thread.join(10)


def idle(pool: Spares) -> bool:
    with pool._lock:
        return pool._lock.wait_for(lambda: not pool._n_started, 10)


def pool_of(nursery: Nursery) -> Spares:
    pool = Spares(nursery.start)
    pool.size, pool.at_once, pool.finish = 2, 1, nursery.finish
    return pool


@pytest.mark.parametrize("at", ["fork", "start", "first calls"])
@pytest.mark.parametrize("error", [*FORESEEN.values(), *UNFORESEEN.values()], ids=[*FORESEEN, *UNFORESEEN])
def test_whatever_ends_the_start_of_a_spare_more_are_started_later(
    at: str, error: BaseException, uncaught: list[str]
) -> None:
    nursery = Nursery(at, error, n_bad=1)
    pool = pool_of(nursery)
    pool.fill()
    assert idle(pool)
    assert pool.take() is None
    assert not any(child.alive for child in nursery.children)
    pool.fill()
    assert idle(pool)
    spare = pool.take()
    assert spare is not None
    assert spare.alive
    assert nursery.n_begun == 3


def test_a_defect_is_not_hushed_up(uncaught: list[str]) -> None:
    before = set(threading.enumerate())
    pool_of(Nursery("start", UNFORESEEN["a defect"], n_bad=1)).fill()
    joined(before)
    assert uncaught == ["RuntimeError"]


def test_who_waits_for_a_spare_goes_on_without_one(uncaught: list[str]) -> None:
    """As a spawn does, which then forks its own child and tells why that fails."""
    may_fail = threading.Event()

    def start() -> Worker:
        may_fail.wait(10)
        raise RuntimeError("nobody foresaw this")

    pool = Spares(start)
    pool.size = pool.at_once = 1
    pool.fill()
    taken: list[Worker | None] = []
    waiting = threading.Thread(target=lambda: taken.append(pool.take()))
    waiting.start()
    may_fail.set()
    waiting.join(10)
    assert taken == [None]


def test_a_thread_that_cannot_be_started_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    nursery = Nursery("fork", RuntimeError(), n_bad=0)
    pool = pool_of(nursery)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start"):
            pool.fill()
    assert pool.take() is None
    pool.fill()
    assert idle(pool)
    assert pool.take() is not None


def test_a_child_that_fails_while_it_is_quiet_is_not_woken_afterwards(uncaught: list[str]) -> None:
    began, may_fail = threading.Event(), threading.Event()
    child = Child()
    pool = Spares(lambda: cast(Worker, child))

    def finish(_: Worker) -> None:
        began.set()
        may_fail.wait(10)
        raise RuntimeError("nobody foresaw this")

    pool.size, pool.at_once, pool.finish = 1, 1, finish
    pool.fill()
    assert began.wait(10)
    pool.hold(1)
    assert cast(Worker, child) in pool._paused
    may_fail.set()
    assert idle(pool)
    assert not child.alive
    assert not pool._paused
