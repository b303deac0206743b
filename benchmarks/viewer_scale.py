"""How the viewer fares on a run of 100,000 candidates while an engine writes 20 events a second.

usage: python benchmarks/viewer_scale.py [--candidates 100000] [--keys 200] [--starts 5] [--store DIR] [--out FILE]

The store is made as in `store_scale.py` (--store DIR uses one that was made with its --keep). Then `kbtui attach` runs
on a pseudo-terminal of 120x40, beside a process that holds the engine's lock and appends events through the real
store: first paint is from the command to the first cards on the screen; key to paint from the write of a cursor key
to the arrival of the line that tells about the candidate it moved to. Effects: processes, a store on the disk.
"""

import argparse
import contextlib
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from store_scale import candidate, compiled, fill, kernel, machine, quantiles, screened, write_report

from kbtui.domain.event import CandidateAdmitted, ProposalsMade
from kbtui.domain.measurement import LiveSample
from kbtui.engine.admission import trailers
from store.reader import Reader
from store.record import RunLedger, open_run
from store.reindex import reindex
from store.workspace import EngineLock, create_workspace, open_workspace

RUN = "softmax-1"
#: Candidates written first through the real store: those that are made in bulk have no source that could be shown.
N_REAL = 150
EVENTS_A_SECOND = 20
#: A card's id in the list, and the sentence about the candidate under the cursor.
CARD = re.compile(rb"c\d{4,6} ")
TOLD = re.compile(rb"(c\d{4,6}) (?:pruned|promoted|rejected|crowned|set|not)")
KBTUI = [sys.executable, "-m", "kbtui"]
TARGETS = {"first_paint_ms": 1_000, "key_to_paint_p95_ms": 50, "rss_mb": 250}


def claim_first() -> None:
    """Where this machine is shared (KBTUI_FIRST_CLAIM=1, as root): this session's processes run before others'."""
    if os.environ.get("KBTUI_FIRST_CLAIM"):
        Path("/proc/self/autogroup").write_text("-20")


class Screen:
    """`kbtui` on a pseudo-terminal; ``received`` is all it has sent."""

    def __init__(self, words: list[str], size: tuple[int, int] = (40, 120)) -> None:
        self.began_s = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            claim_first()
            os.environ.update({"TERM": "xterm-256color", "COLORTERM": "truecolor"})
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
            os.execv(KBTUI[0], [*KBTUI, *words])
        self.received = b""

    def read(self, for_s: float) -> bytes:
        """What comes within the time, at the first chunk; empty where nothing does."""
        if not select.select([self.fd], [], [], for_s)[0]:
            return b""
        chunk = os.read(self.fd, 1 << 16)
        self.received += chunk
        return chunk

    def until(self, wanted: re.Pattern[bytes], since: int, limit_s: float = 20.0) -> re.Match[bytes]:
        deadline_s = time.perf_counter() + limit_s
        while (found := wanted.search(self.received, since)) is None:
            if time.perf_counter() > deadline_s:
                raise SystemExit(f"{wanted.pattern!r} did not come in {limit_s} s; so far {self.received[-2000:]!r}")
            self.read(0.2)
        return found

    def drain(self, for_s: float) -> int:
        """Bytes that come in this time."""
        before, deadline_s = len(self.received), time.perf_counter() + for_s
        while (left_s := deadline_s - time.perf_counter()) > 0:
            self.read(left_s)
        return len(self.received) - before

    def write(self, keys: bytes) -> None:
        os.write(self.fd, keys)

    def memory_mb(self) -> dict[str, float]:
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = dict(re.findall(r"(VmRSS|VmHWM):\s+(\d+) kB", status))
        return {name: round(int(kb) / 1024, 1) for name, kb in found.items()}

    def loads(self, library: str) -> bool:
        return library in Path(f"/proc/{self.pid}/maps").read_text()

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def first_paint_ms(root: Path) -> float:
    screen = Screen(["attach", RUN, "--workspace", str(root)])
    try:
        screen.until(CARD, 0)
        return (time.perf_counter() - screen.began_s) * 1e3
    finally:
        screen.close()


def key_to_paint_ms(screen: Screen, n_keys: int) -> Iterator[float]:
    """Down the list; each time until the sentence about another candidate arrives."""
    at = b""
    for _ in range(n_keys):
        since, began_s = len(screen.received), time.perf_counter()
        screen.write(b"j")
        while True:
            found = screen.until(TOLD, since)
            if found[1] != at:
                break
            since = found.end()
        at = found[1]
        yield (time.perf_counter() - began_s) * 1e3
        screen.drain(0.06)


def write_events(root: Path, ready_fd: int) -> None:
    """What an engine does: it holds the lock, beats, and appends so many events a second; until it is ended."""
    claim_first()
    parent = os.getppid()
    workspace = open_workspace(root)
    with EngineLock(workspace.lock).acquire(RUN):
        ledger = open_run(workspace, RUN)
        with Reader(workspace) as reader:
            number, wall_s = reader.totals(RUN).n_candidates, reader.runs()[0].wall_s
        for _ in range(N_REAL):
            number += 1
            for event in (1, 2, 3, 4):
                append(ledger, number, event, wall_s)
        os.write(ready_fd, b"!")
        next_s = time.perf_counter()
        while os.getppid() == parent:
            number += 1
            for step in (1, 2, 3, 4):
                next_s += 1 / EVENTS_A_SECOND
                wall_s += 1 / EVENTS_A_SECOND
                time.sleep(max(0.0, next_s - time.perf_counter()))
                append(ledger, number, step, wall_s)
                name = candidate(number).id
                ledger.samples((LiveSample(name, "c0001", "4096x16384", 130.0 + step, 140.0, step, 6),))
                ledger.beat("measure", name, 1, wall_s, 0.0)


def append(ledger: RunLedger, number: int, step: int, wall_s: float) -> None:
    """One of the four events of a candidate's life; its parent is the one before, so that there is a difference."""
    match step:
        case 1:
            told = replace(candidate(number), parents=(candidate(number - 1).id,))
            commit = ledger.commit_candidate(number, kernel(number), (), told.summary, trailers(told, ledger.run))
            ledger.append(CandidateAdmitted(told, 1, commit), wall_s, 0.0)
        case 2:
            ledger.append(ProposalsMade("rewrites", None, 1, 0, False, 0.1), wall_s, 0.0)
        case 3:
            ledger.append(compiled(number), wall_s, 0.0)
        case _:
            ledger.append(screened(number), wall_s, 0.0)


@contextlib.contextmanager
def engine_like(root: Path) -> Iterator[None]:
    reading, writing = os.pipe()
    words = [sys.executable, __file__, "--write", str(root), str(writing)]
    process = subprocess.Popen(words, pass_fds=(writing,), start_new_session=True)
    os.close(writing)
    try:
        if os.read(reading, 1) != b"!":
            raise SystemExit("the writer did not start")
        yield
    finally:
        process.kill()
        process.wait()
        os.close(reading)


def measure(root: Path, n_keys: int, n_starts: int) -> dict[str, object]:
    workspace = open_workspace(root)
    with Reader(workspace) as reader:
        totals = reader.totals(RUN)
    report: dict[str, object] = {"candidates": totals.n_candidates, "events": totals.n_events}
    report["first_claim_on_the_cores"] = bool(os.environ.get("KBTUI_FIRST_CLAIM"))
    with engine_like(root):
        first_paint_ms(root)  # the files are in the page cache from then on
        report["first_paint_ms"] = quantiles([first_paint_ms(root) for _ in range(n_starts)])
        screen = Screen(["attach", RUN, "--workspace", str(root)])
        try:
            screen.until(CARD, 0)
            screen.drain(6.0)
            report["key_to_paint_ms"] = quantiles(list(key_to_paint_ms(screen, n_keys)))
            report["bytes_a_second"] = round(screen.drain(10.0) / 10)
            report["memory_mb"] = screen.memory_mb()
            report["torch_loaded"] = screen.loads("libtorch")
        finally:
            screen.close()
    return report


def make_store(root: Path, n_candidates: int) -> None:
    workspace = create_workspace(root)
    fill(workspace, n_candidates, 1)
    reindex(workspace)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candidates", type=int, default=100_000)
    parser.add_argument("--keys", type=int, default=200)
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--write", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.write:
        write_events(Path(args.write[0]), int(args.write[1]))
    folder = args.store or Path(tempfile.mkdtemp(prefix="kbtui-viewer-scale-"))
    try:
        if not args.store:
            make_store(folder, args.candidates)
        report = {
            "command": " ".join(["python", *sys.argv]),
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine(),
            "targets": TARGETS,
            **measure(folder, args.keys, args.starts),
        }
    finally:
        if not args.store:
            shutil.rmtree(folder, ignore_errors=True)
    write_report(report, args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
