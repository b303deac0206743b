"""The engine's heartbeat and its live samples, written beside the main loop. Effects: a thread, the store."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from kbtui.domain.measurement import LiveSample
from kbtui.engine.meter import Meter
from kbtui.engine.ports import Ledger

BEAT_S = 1.0
SAMPLES_S = 0.25


@dataclass(frozen=True, slots=True)
class Activity:
    """What the engine is doing now, for viewers."""

    what: str
    candidate: str | None = None
    rung: int | None = None


class Pulse:
    """Beats once a second, at once when the activity changes, and flushes samples four times a second.

    ``on_beat`` is called with each beat, in the pulse's own thread.
    """

    def __init__(self, ledger: Ledger, meter: Meter, on_beat: Callable[[], None] = lambda: None) -> None:
        self._ledger = ledger
        self._on_beat = on_beat
        self._meter = meter
        self._activity = Activity("starting")
        self._samples: list[LiveSample] = []
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pulse", daemon=True)
        self._thread.start()

    def show(self, activity: Activity) -> None:
        self._activity = activity
        self._wake.set()

    def sample(self, sample: LiveSample) -> None:
        with self._lock:
            self._samples.append(sample)

    def close(self) -> None:
        self._closed.set()
        self._wake.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        since_beat_s = BEAT_S
        while not self._closed.is_set():
            changed = self._wake.is_set()
            self._wake.clear()
            if changed or since_beat_s >= BEAT_S:
                self._beat()
                since_beat_s = 0.0
            self._flush()
            self._wake.wait(SAMPLES_S)
            since_beat_s += SAMPLES_S
        self._flush()

    def _beat(self) -> None:
        now = self._activity
        self._ledger.beat(now.what, now.candidate, now.rung, self._meter.wall_s, self._meter.gpu_s)
        self._on_beat()

    def _flush(self) -> None:
        with self._lock:
            batch, self._samples = tuple(self._samples), []
        if batch:
            self._ledger.samples(batch)
