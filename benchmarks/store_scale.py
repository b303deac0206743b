"""How the store fares with 100,000 candidates: admission, opening, bytes a candidate, rebuilding the index.

usage: python benchmarks/store_scale.py [--candidates 100000] [--runs 50] [--admissions 1000] [--keep DIR] [--out FILE]

The workspace is filled through `git fast-import`, with the very commits and messages the store writes, then indexed by
`reindex`; a kernel of about 2 KB that differs from its parent's by a constant, and three events a candidate (admitted,
compiled, screened with times and resources) with one more for six, as most candidates of a real search get. Everything
that is timed goes through the real store. Effects: a workspace on the disk of --keep, or of the temporary folder.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median

from kbtui.domain.candidate import Candidate, Origin, candidate_id, source_sha
from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.evaluation import ProblemReport, RungOutcome
from kbtui.domain.event import (
    Budget,
    CandidateAdmitted,
    ChildEntry,
    Decision,
    Envelope,
    Event,
    ProblemOpened,
    ProposalsMade,
    RungCompleted,
    RunStarted,
)
from kbtui.domain.measurement import Clock, Comparison, Measurement, Outcome, ShapeRatio, ShapeTiming
from kbtui.domain.profile import KernelResources
from kbtui.domain.rung import DEFAULT_LADDER
from kbtui.domain.verdict import Proof, verified
from kbtui.engine.admission import trailers
from store.git_process import isolated_environment
from store.ledger import IDENTITY
from store.message import candidate_message, envelope_json, event_message
from store.packing import pack
from store.reader import Reader
from store.record import RunLedger, create_run, open_run
from store.reindex import reindex
from store.subject import subject
from store.workspace import EngineLock, Workspace, create_workspace, open_workspace

SAMPLE = Path(__file__).parents[1] / "sample_kernels/softmax/kernel.py"
BEGAN = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
PER_PARENT = 8
#: Candidates in one answer of a generator.
BATCH = 6


def kernel(number: int) -> str:
    """The softmax sample with a constant of its own."""
    return SAMPLE.read_text() + f"\nBLOCK_SIZE = {1024 + number}\nNUM_WARPS = {1 << number % 6}\n"


def started(run: str) -> RunStarted:
    device, budget = DATA_SHEETS["h200"], Budget(wall_s=600.0)
    makers = ("playbook", "rewrites")
    return RunStarted(
        run, "softmax", "softmax", "ab" * 32, device, 0, budget, makers, None, ChildEntry.PARENT, DEFAULT_LADDER
    )


def candidate(number: int) -> Candidate:
    parents = (candidate_id(max(1, number // PER_PARENT)),) if number > 1 else ()
    origin = Origin("rewrites", "tile_size", "larger_tiles", (("BLOCK", str(1024 + number)), ("num_warps", "8")))
    told = f"tile of {1024 + number} elements, {1 << number % 6} warps"
    return Candidate(candidate_id(number), source_sha(kernel(number)), parents, origin, f"softmax/{number % 7}", told)


def compiled(number: int) -> RungCompleted:
    outcome = RungOutcome(
        verified(0, Proof.NONE, "compiled 1 kernels for sm_90"), 0.0, 0.3 + number % 7 / 10, _used(number), 111.8
    )
    told = "compiles: 32 registers, no spills, occupancy 100% (registers)"
    return RungCompleted(candidate_id(number), 0, outcome, Decision.PROMOTE, told, None, False)


def screened(number: int) -> RungCompleted:
    ratio = 0.7 + number % 997 / 3000
    shape = ShapeRatio("4096x16384", ratio, ratio - 0.01, ratio + 0.01)
    beside = Comparison("c0001", Outcome.SLOWER, ratio, ratio - 0.01, ratio + 0.01, 0.9987, 3, 1, (shape,))
    timing = ShapeTiming("4096x16384", 252.5 / ratio, 251.9 / ratio, 253.2 / ratio, 36)
    measured = Measurement(Clock.MEASURED, (timing,), (beside,))
    outcome = RungOutcome(
        verified(1, Proof.GPU, "12 checks", 1.03e-7), 0.25, 0.31, _used(number), 111.8, measurement=measured
    )
    told = f"{(ratio - 1) * 100:+.1f} % over c0001, slower, 99.9% sure, 3 pairs in 1 processes"
    return RungCompleted(candidate_id(number), 1, outcome, Decision.PRUNE, told, ratio, False)


def _used(number: int) -> tuple[KernelResources, ...]:
    shapes = (("4096x16384", 4096), ("16x16384", 16), ("4096x65536", 4096))
    return tuple(
        KernelResources(
            "softmax_rows", s, (n, 1, 1), 8, 3, 32 + number % 64, 0, 32, 1.0, "registers", load_bytes_max=16
        )
        for s, n in shapes
    )


class Import:
    """One `git fast-import` of whole runs."""

    def __init__(self, git_dir: Path) -> None:
        command = ["git", f"--git-dir={git_dir}", "fast-import", "--quiet", "--done", "--depth=50"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, env=isolated_environment())
        self._out = self._process.stdin
        self._mark = 0

    def run(self, name: str, n_candidates: int) -> int:
        """All commits of one run; returns how many events it has."""
        commits: dict[int, int] = {}
        tip, best_blob, n_events = 0, 0, 0
        for event, number in story(name, n_candidates):
            if isinstance(event, CandidateAdmitted):
                blob = self._blob(kernel(number))
                best_blob = best_blob or blob
                commits[number] = self._candidate(name, number, blob, commits.get(max(1, number // PER_PARENT)))
            tip = self._event(name, n_events, event, tip, commits.get(number), best_blob)
            n_events += 1
        self._write(f"reset refs/heads/runs/{name}\nfrom :{tip}\n\n")
        return n_events

    def close(self) -> None:
        self._write("done\n")
        assert self._out is not None
        self._out.close()
        if self._process.wait() != 0:
            raise SystemExit("git fast-import failed")

    def _candidate(self, run: str, number: int, blob: int, parent: int | None) -> int:
        told = candidate(number)
        message = candidate_message(told.id, f"{told.id} {told.summary}", run, trailers(told, run))
        return self._commit("refs/kbtui/candidate", number, message, [parent] if parent else [], blob)

    def _event(self, run: str, seq: int, event: Event, tip: int, commit: int | None, best: int) -> int:
        at = (BEGAN + timedelta(seconds=seq)).isoformat(timespec="milliseconds")
        envelope = Envelope(seq, at, seq * 0.3, seq * 0.2, _placed(event, commit))
        line = subject(event, {}, "c0001")
        message = event_message(line, run, envelope, envelope_json(envelope), ())
        return self._commit(f"refs/heads/runs/{run}", seq, message, [m for m in (tip, commit) if m], best)

    def _commit(self, ref: str, second: int, message: str, parents: list[int], blob: int) -> int:
        self._mark += 1
        who = f"{IDENTITY} {int(BEGAN.timestamp()) + second} +0000"
        text = message.encode()
        lines = [f"commit {ref}", f"mark :{self._mark}", f"author {who}", f"committer {who}", f"data {len(text)}"]
        self._write("\n".join(lines) + "\n")
        self._write_bytes(text + b"\n")
        links = [f"{'merge' if n else 'from'} :{mark}" for n, mark in enumerate(parents)]
        tree = ["deleteall", *([f"M 100644 :{blob} kernel.py"] if blob else [])]
        self._write("\n".join([*links, *tree]) + "\n\n")
        return self._mark

    def _blob(self, source: str) -> int:
        self._mark += 1
        content = source.encode()
        self._write(f"blob\nmark :{self._mark}\ndata {len(content)}\n")
        self._write_bytes(content + b"\n")
        return self._mark

    def _write(self, text: str) -> None:
        self._write_bytes(text.encode())

    def _write_bytes(self, content: bytes) -> None:
        assert self._out is not None
        self._out.write(content)


def _placed(event: Event, commit: int | None) -> Event:
    """An imported candidate's id is known to git alone; forty hex digits stand for it in the event."""
    if isinstance(event, CandidateAdmitted):
        return CandidateAdmitted(event.candidate, event.entry_rung, f"{commit or 0:040x}")
    return event


def story(run: str, n_candidates: int) -> Iterator[tuple[Event, int]]:
    """Events with the number of the candidate each is about, 0 for none."""
    yield started(run), 0
    yield ProblemOpened(ProblemReport("row_softmax")), 0
    for first in range(1, n_candidates + 1, BATCH):
        batch = range(first, min(first + BATCH, n_candidates + 1))
        for number in batch:
            yield CandidateAdmitted(candidate(number), 1, ""), number
        yield ProposalsMade("rewrites", None, len(batch), 0, False, 0.1), 0
        for number in batch:
            yield compiled(number), number
            yield screened(number), number


def timed(action: Callable[[], object]) -> float:
    """Milliseconds."""
    began_s = time.perf_counter()
    action()
    return (time.perf_counter() - began_s) * 1e3


def quantiles(samples_ms: list[float]) -> dict[str, float]:
    ordered = sorted(samples_ms)
    return {
        "n": len(ordered),
        "median": round(median(ordered), 2),
        "p95": round(ordered[int(0.95 * (len(ordered) - 1))], 2),
        "max": round(ordered[-1], 2),
    }


def fill(workspace: Workspace, n_candidates: int, n_runs: int) -> int:
    """Returns the number of events."""
    importing = Import(workspace.git_dir)
    sizes = [n_candidates // n_runs + (n < n_candidates % n_runs) for n in range(n_runs)]
    n_events = sum(importing.run(f"softmax-{n + 1}", size) for n, size in enumerate(sizes))
    importing.close()
    subprocess.run(
        ["git", f"--git-dir={workspace.git_dir}", "update-ref", "-d", "refs/kbtui/candidate"],
        check=True,
        env=isolated_environment(),
    )
    return n_events


def admit(ledger: RunLedger, number: int) -> None:
    """What the engine does to admit one candidate."""
    told = candidate(number)
    commit = ledger.commit_candidate(number, kernel(number), (), told.summary, trailers(told, ledger.run))
    ledger.append(CandidateAdmitted(told, 1, commit), number, 0.0)


def admissions(workspace: Workspace, run: str, first: int, n: int) -> dict[str, float]:
    """Milliseconds each takes; no other work between them."""
    with EngineLock(workspace.lock).acquire(run):
        ledger = open_run(workspace, run)
        try:
            admit(ledger, first)  # the first opens what is opened once
            return quantiles([timed(partial(admit, ledger, first + k)) for k in range(1, n + 1)])
        finally:
            ledger.close()


def view(root: Path) -> None:
    """What a viewer reads to show its first screen but for the run's state: the list and the engine."""
    with Reader(open_workspace(root)) as reader:
        reader.runs()
        reader.engine()


def view_page(root: Path, run: str) -> None:
    """The list, and the last page of a run's events."""
    with Reader(open_workspace(root)) as reader:
        last = reader.runs()
        assert last
        reader.envelopes(run, reader.last_seq(run) - 200)


def view_state(root: Path, run: str) -> None:
    with Reader(open_workspace(root)) as reader:
        reader.state(run)


def take_up(workspace: Workspace, run: str) -> None:
    """What an engine does before its first decision, device and problem aside."""
    with EngineLock(workspace.lock).acquire(run):
        open_run(workspace, run).close()


def packed_bytes(n_candidates: int) -> dict[str, float]:
    """A run written by the real store, event by event, then packed as the engine packs."""
    with tempfile.TemporaryDirectory(prefix="kbtui-packed-") as folder:
        workspace = create_workspace(Path(folder))
        ledger = create_run(workspace, started(""))
        commits: dict[int, str] = {}
        for event, number in story("", n_candidates):
            if isinstance(event, CandidateAdmitted):
                parent = commits.get(max(1, number // PER_PARENT))
                told = event.candidate
                commits[number] = ledger.commit_candidate(
                    number, kernel(number), (parent,) if parent else (), told.summary, trailers(told, ledger.run)
                )
                event = CandidateAdmitted(told, 1, commits[number])
            if not isinstance(event, RunStarted):
                ledger.append(event, number * 0.3, number * 0.2, (), commits.get(1))
        ledger.close()
        loose = disk_bytes(workspace.git_dir)
        pack_ms = timed(lambda: pack(workspace))
        packed = disk_bytes(workspace.git_dir)
    return {
        "candidates": n_candidates,
        "events_a_candidate": round(3 + 1 / BATCH, 2),
        "kernel_bytes": len(kernel(1)),
        "loose_bytes_a_candidate": round(loose / n_candidates),
        "packed_bytes_a_candidate": round(packed / n_candidates),
        "pack_s": round(pack_ms / 1e3, 1),
    }


def disk_bytes(folder: Path) -> int:
    """What the files take on disk, in whole blocks."""
    return sum(p.stat().st_blocks * 512 for p in folder.rglob("*") if p.is_file())


def write_report(report: dict[str, object], out: Path | None) -> None:
    """On stdout, and into ``out`` where one is named."""
    text = json.dumps(report, indent=2)
    print(text)
    if out:
        out.write_text(text + "\n")


def machine() -> dict[str, object]:
    kind = subprocess.run(["df", "--output=fstype", tempfile.gettempdir()], capture_output=True, text=True)
    git = subprocess.run(["git", "--version"], capture_output=True, text=True)
    return {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "load_1m": round(os.getloadavg()[0], 1),
        "file_system": kind.stdout.split()[-1],
        "git": git.stdout.strip(),
    }


def measure(root: Path, n_candidates: int, n_runs: int, n_admissions: int) -> dict[str, object]:
    workspace = create_workspace(root)
    report: dict[str, object] = {"candidates": n_candidates, "runs": n_runs}
    began_s = time.perf_counter()
    n_events = report["events"] = fill(workspace, n_candidates, n_runs)
    report["import_s"] = round(time.perf_counter() - began_s, 1)
    report["git_bytes_imported"] = disk_bytes(workspace.git_dir)
    took_ms = timed(lambda: reindex(workspace))
    report["reindex_s"], report["reindex_events_a_second"] = round(took_ms / 1e3, 1), round(n_events / took_ms * 1e3)
    report["index_bytes"] = workspace.index.stat().st_size
    run, size = "softmax-1", n_candidates // n_runs
    report["open_for_viewing_ms"] = quantiles([timed(lambda: view(root)) for _ in range(10)])
    report["open_with_last_page_ms"] = quantiles([timed(lambda: view_page(root, run)) for _ in range(10)])
    report["open_for_engine_ms"] = quantiles([timed(lambda: take_up(workspace, run)) for _ in range(5)])
    report["fold_one_run_ms"] = round(timed(lambda: view_state(root, run)))
    report["candidates_of_that_run"] = size
    report["admission_ms"] = admissions(workspace, run, size + 1, n_admissions)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candidates", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--admissions", type=int, default=1_000)
    parser.add_argument("--packed", type=int, default=3_000, help="candidates in the measurement of bytes")
    parser.add_argument("--one-run", action="store_true", help="measure also with all candidates in one run")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    folder = args.keep or Path(tempfile.mkdtemp(prefix="kbtui-scale-"))
    try:
        report: dict[str, object] = {
            "command": " ".join(["python", *sys.argv]),
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": machine(),
            "targets": {"admission_p95_ms": 10, "open_ms": 300, "bytes_a_candidate": 3072, "reindex_events_s": 1000},
            "many_runs": measure(folder / "many", args.candidates, args.runs, args.admissions),
        }
        if args.one_run:
            report["one_run"] = measure(folder / "one", args.candidates, 1, args.admissions)
        report["packed"] = packed_bytes(args.packed)
    finally:
        if not args.keep:
            shutil.rmtree(folder, ignore_errors=True)
    write_report(report, args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
