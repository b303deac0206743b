"""Has every instantiation checked, and those that are right timed, by workers. Effects: processes, threads.

A worker is the command itself, started with ``--worker``: it reads jobs from stdin (see jobs.py).
"""

import contextlib
import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Sequence

from benchmarks.playbook.rows import Row

JOB_TIMEOUT_S = 60


class Worker:
    """A child that does jobs; one that hangs or dies is replaced at the next job."""

    def __init__(self, command: Sequence[str], index: str) -> None:
        self.command = command
        self.environment = {**os.environ, "CUDA_VISIBLE_DEVICES": index}
        self.child: subprocess.Popen[str] | None = None

    def do(self, job: Row, timeout_s: float = JOB_TIMEOUT_S) -> Row:
        if self.child is None or self.child.poll() is not None:
            self.child = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.environment
            )
        child = self.child
        assert child.stdin is not None
        assert child.stdout is not None
        timer = threading.Timer(timeout_s, child.kill)
        timer.start()
        try:
            child.stdin.write(json.dumps(job) + "\n")
            child.stdin.flush()
            line = child.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        answer: Row = json.loads(line) if line else {"failed": f"the process died or took over {timeout_s:.0f} s"}
        if "CUDA" in answer.get("failed", "") or not line:
            self.close()
        return answer

    def close(self) -> None:
        if self.child is not None:
            self.child.kill()
            self.child.wait()
            self.child = None


def check_all(rows: list[Row], command: Sequence[str], n_workers: int, index: str, until: float) -> None:
    waiting: queue.SimpleQueue[Row] = queue.SimpleQueue()
    for row in rows:
        waiting.put(row)

    def lane() -> None:
        worker = Worker(command, index)
        with contextlib.suppress(queue.Empty):
            while time.monotonic() < until:
                row = waiting.get_nowait()
                row.update(worker.do({**row, "do": "check"}, min(JOB_TIMEOUT_S, until + 10 - time.monotonic())))
        worker.close()

    lanes = [threading.Thread(target=lane) for _ in range(n_workers)]
    for thread in lanes:
        thread.start()
    for thread in lanes:
        thread.join()


def time_all(rows: list[Row], command: Sequence[str], index: str, until: float) -> None:
    worker = Worker(command, index)
    for row in rows:
        if row.get("error_over_allowed", 1e9) <= 1.0 and time.monotonic() < until:
            row.update(worker.do({**row, "do": "time"}))
    worker.close()
