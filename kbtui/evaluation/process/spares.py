"""Effects: keeps warm children of one kind in reserve, started by threads of its own.

Warming disturbs whoever times something: ``hold`` stops those that warm up where they are, and lets them go on later.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable

from kbtui.errors import EngineError
from kbtui.evaluation.process.failures import WorkerFailure
from kbtui.evaluation.process.worker import Worker

#: Children that warm up side by side where nothing else is said.
AT_ONCE = 3


def _as_it_is(_: Worker) -> None: ...


class Spares:
    """Spares of one kind. ``start`` forks a child that then warms up by itself.

    ``finish`` does the rest that can be done before anybody needs it, in the thread that started it; it may raise
    WorkerFailure. ``at_once``: how many warm up side by side.
    """

    def __init__(self, start: Callable[[], Worker]) -> None:
        self.size = 0
        self.at_once = AT_ONCE
        self.finish: Callable[[Worker], None] = _as_it_is
        self._start = start
        self._lock = threading.Condition()
        self._spares: deque[Worker] = deque()
        self._warming: set[Worker] = set()
        self._paused: set[Worker] = set()
        self._n_started = self._n_forking = self._held = 0

    def take(self) -> Worker | None:
        """A spare, or the next one of those that warm up; None where there are none, or they may not go on now."""
        with self._lock:
            self._lock.wait_for(lambda: self._spares or not self._n_started or self._held)
            while self._spares:
                spare = self._spares.popleft()
                if spare in self._paused:
                    self._paused.discard(spare)
                    spare.go_on()
                if spare.alive:
                    return spare
                spare.kill()
        return None

    def fill(self) -> None:
        """Start what is missing, a few at a time. Returns at once."""
        with self._lock:
            while self._n_wanted() > 0 and self._n_started < self.at_once:
                threading.Thread(target=self._fill, name="spares", daemon=True).start()
                self._n_started += 1

    def hold(self, timeout_s: float) -> None:
        """Stop those that warm up, and start none, until ``release``. Returns when they stand still."""
        with self._lock:
            self._held += 1
            self._lock.wait_for(lambda: not self._n_forking, timeout_s)
            self._pause(self._warming)
            paused = tuple(self._paused)
        for worker in paused:
            worker.stands_still(timeout_s)

    def release(self) -> None:
        with self._lock:
            self._held -= 1
            if not self._held:
                for worker in self._paused:
                    worker.go_on()
                self._paused.clear()
            self._lock.notify_all()
        self.fill()

    def drop(self, end: Callable[[Worker], None] = Worker.kill) -> None:
        """Keep none any more, until ``size`` is set again."""
        with self._lock:
            self.size = 0
            spares, self._spares = list(self._spares), deque()
            self._paused.difference_update(spares)
        for spare in spares:
            end(spare)

    def _fill(self) -> None:
        """One spare after the other, as long as some are missing.

        An error that nobody foresaw is this thread's alone: who waits for a spare goes on, ``fill`` starts another.
        """
        warmed = True
        while warmed:
            with self._lock:
                self._lock.wait_for(lambda: not self._held)
                if self._n_wanted(besides_me=True) <= 0:
                    return self._ended()
            warmed = False
            try:
                warmed = self._warmed()
            finally:
                if not warmed:
                    self._ended()

    def _warmed(self) -> bool:
        """False where this kind cannot start: it shows its reason where it is spawned, in the caller's hands."""
        worker = self._forked()
        if worker is None:
            return False
        warm = False
        try:
            worker.await_start()
            self.finish(worker)
            warm = True
        except WorkerFailure:
            return False
        finally:
            with self._lock:
                self._warming.discard(worker)
            if not warm:
                self._let_go(worker)
        return self._kept(worker)

    def _let_go(self, worker: Worker) -> None:
        with self._lock:
            self._paused.discard(worker)
        worker.kill()

    def _forked(self) -> Worker | None:
        with self._lock:
            self._n_forking += 1
            self._lock.notify_all()
        worker = None
        try:
            worker = self._start()
        except (EngineError, OSError):
            return None
        finally:
            with self._lock:
                self._n_forking -= 1
                if worker is not None:
                    self._warming.add(worker)
                    if self._held:
                        self._pause((worker,))
                self._lock.notify_all()
        return worker

    def _pause(self, workers: Iterable[Worker]) -> None:
        """Whoever is paused under the lock is among those that ``release`` lets go on, warm by then or not."""
        for worker in workers:
            worker.pause()
            self._paused.add(worker)

    def _kept(self, worker: Worker) -> bool:
        with self._lock:
            if self.size:
                self._spares.append(worker)
                self._lock.notify_all()
                return True
        self._let_go(worker)
        return False

    def _ended(self) -> None:
        with self._lock:
            self._n_started -= 1
            self._lock.notify_all()

    def _n_wanted(self, besides_me: bool = False) -> int:
        return 0 if self._held else self.size - len(self._spares) - self._n_started + besides_me
