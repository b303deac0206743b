"""Effects: keeps warm children of one kind in reserve, started several at once by a thread of its own.

Warming disturbs whoever times something, and four children warm up in little more than the time of one. So spares are
not replaced one by one: once few are left, all that are missing start together.
"""

import threading
from collections import deque
from collections.abc import Callable

from kbtui.errors import EngineError
from kbtui.evaluation.process.failures import WorkerFailure
from kbtui.evaluation.process.worker import Worker

#: Spares are filled up again when this part of them, or fewer, is left.
LOW_WATER = 2


class Spares:
    """Spares of one kind. Filled by a thread of its own, for a fork of a large process takes tens of milliseconds."""

    def __init__(self, start: Callable[[], Worker]) -> None:
        self.size = 0
        self._start = start
        self._lock = threading.Condition()
        self._spares: deque[Worker] = deque()
        self._filling = False
        self._held = 0

    def take(self) -> Worker | None:
        with self._lock:
            while self._spares:
                spare = self._spares.popleft()
                if spare.alive:
                    return spare
                spare.kill()
        return None

    def fill(self) -> None:
        with self._lock:
            if self._filling or self._held or len(self._spares) > self.size // LOW_WATER:
                return
            self._filling = True
        threading.Thread(target=self._fill, name="spares", daemon=True).start()

    def hold(self, timeout_s: float) -> None:
        with self._lock:
            self._held += 1
            self._lock.wait_for(lambda: not self._filling, timeout_s)

    def release(self) -> None:
        with self._lock:
            self._held -= 1
        self.fill()

    def drop(self) -> None:
        with self._lock:
            self.size = 0
            spares, self._spares = list(self._spares), deque()
        for spare in spares:
            spare.kill()

    def _fill(self) -> None:
        try:
            while wanted := self._n_wanted():
                started = [self._start() for _ in range(wanted)]
                for spare in started:
                    spare.await_start()
                with self._lock:
                    self._spares.extend(started)
        except (EngineError, WorkerFailure):
            # A kind that cannot start shows its reason where it is spawned, in the caller's hands.
            pass
        finally:
            with self._lock:
                self._filling = False
                self._lock.notify_all()

    def _n_wanted(self) -> int:
        with self._lock:
            return 0 if self._held else max(0, self.size - len(self._spares))
