"""Effects: has launchers built in a trusted child and copies them beside a candidate's kernels."""

import shutil
import threading
from pathlib import Path
from typing import Any

from kbtui.evaluation.process import Worker, WorkerFailure, Zygote

_ROLE = "kbtui.evaluation.compile.launchers"
_TIMEOUT_S = 60.0


class Launchers:
    """Launchers built so far, in one directory. Safe to use from several threads."""

    def __init__(self, zygote: Zygote, directory: Path) -> None:
        self._zygote, self._directory = zygote, directory
        self._lock = threading.Lock()
        self._entries: dict[str, str] = {}
        self._worker: Worker | None = None

    def publish(self, descriptions: tuple[dict[str, Any], ...], cache: Path) -> None:
        """Put the driver's helper and these launchers into a candidate's cache. Raises WorkerFailure."""
        entries = [self._entry("build_driver_helper", {}), *(self._entry("build", d) for d in descriptions)]
        for entry in dict.fromkeys(entries):
            # Copies: a link would let the candidate's own compile children write into what others load.
            shutil.copytree(self._directory / entry, cache / entry, dirs_exist_ok=True)

    def close(self) -> None:
        if self._worker is not None:
            self._worker.kill()
            self._worker = None

    def _entry(self, method: str, description: dict[str, Any]) -> str:
        key = repr((method, description))
        with self._lock:
            if key not in self._entries:
                self._entries[key] = self._built(method, description)
            return self._entries[key]

    def _built(self, method: str, description: dict[str, Any]) -> str:
        if self._worker is None or not self._worker.alive:
            self._directory.mkdir(parents=True, exist_ok=True)
            self._worker = self._zygote.spawn(_ROLE, sandbox=None)
        reply = self._worker.call(method, timeout_s=_TIMEOUT_S, cache=str(self._directory), **description)
        return str(reply.value)


def says_why(failure: WorkerFailure) -> str:
    """One line for a person."""
    return f"Triton's launcher could not be built ({failure}); it needs a C compiler (gcc) and the driver's libcuda"
