"""Kill the engine with SIGKILL at random moments, resume it, and check that nothing was lost or done twice.

usage: python benchmarks/kill_campaign.py [--problem softmax] [--device model:a100] [--kills 10] [--seed 0] [--out FILE]

Effects: a workspace in a temporary folder, real engines, real signals. Prints one JSON document.
"""

import argparse
import itertools
import json
import os
import platform
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from kbtui.domain.event import CandidateAdmitted, RungCompleted, RunResumed
from store.reader import Reader
from store.workspace import open_workspace

START_S = 90.0
END_S = 600.0


@dataclass
class Report:
    """``faults`` is empty where everything held."""

    command: str
    machine: str
    at: str
    device: str
    seed: int
    n_kills: int = 0
    n_resumes: int = 0
    n_candidates: int = 0
    n_evaluations: int = 0
    killed_while: dict[str, int] = field(default_factory=dict)
    gone_within_s: list[float] = field(default_factory=list)
    wall_s: float = 0.0
    ended: str = ""
    faults: list[str] = field(default_factory=list)


def kbtui(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "kbtui", *args], capture_output=True, text=True, check=False)


def run_campaign(
    workspace: Path, problem: str, device: str, kills: int, seed: int, candidates: int, longest_s: float
) -> Report:
    """One search of ``candidates`` candidates, its engine killed ``kills`` times after up to ``longest_s`` seconds."""
    where = ("--workspace", str(workspace))
    command = f"kbtui run {problem} --device {device} --candidates {candidates} --seed {seed}"
    report = Report(command, platform.platform(), datetime.now(UTC).isoformat(timespec="seconds"), device, seed)
    rng = random.Random(seed)
    began_s = time.monotonic()
    limits = ("--candidates", str(candidates), "--device", device, "--seed", str(seed))
    _must(kbtui("run", problem, *limits, "--detach", *where), report)
    reader = Reader(open_workspace(workspace))
    run = reader.runs()[0].run
    for _ in range(kills):
        if reader.state(run).ended is not None:
            break
        _kill_at_random(reader, rng.uniform(0.3, longest_s), report)
        _check_stores(workspace, report)
        if reader.state(run).ended is None:
            _must(kbtui("resume", run, "--detach", *where), report)
            report.n_resumes += 1
    _await_end(reader, run, report)
    report.wall_s = round(time.monotonic() - began_s, 1)
    _check_story(reader, run, report)
    _check_stores(workspace, report)
    return report


def _must(done: subprocess.CompletedProcess[str], report: Report) -> None:
    if done.returncode != 0:
        report.faults.append(f"exit {done.returncode}: {done.stderr.strip()[-300:]}")


def _kill_at_random(reader: Reader, after_s: float, report: Report) -> None:
    deadline_s = time.monotonic() + START_S
    while (engine := reader.engine()) is None or not engine.alive:
        if time.monotonic() > deadline_s:
            report.faults.append(f"no engine after {START_S:.0f} s")
            return
        time.sleep(0.05)
    time.sleep(after_s)
    engine = reader.engine()
    if engine is None or not engine.alive:
        return
    family = descendants(engine.pid)
    os.kill(engine.pid, signal.SIGKILL)
    report.n_kills += 1
    report.killed_while[engine.activity] = report.killed_while.get(engine.activity, 0) + 1
    killed_s = time.monotonic()
    while any(alive(pid) for pid in family) and time.monotonic() - killed_s < 5.0:
        time.sleep(0.02)
    gone_s = time.monotonic() - killed_s
    report.gone_within_s.append(round(gone_s, 2))
    if gone_s > 2.0:
        report.faults.append(f"processes lived on for {gone_s:.1f} s after the engine was killed")


def descendants(pid: int) -> list[int]:
    """All processes below one, itself included, from /proc."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (parent := _parent(entry)) is not None:
            children.setdefault(parent, []).append(int(entry.name))
    found = [pid]
    for at in found:
        found.extend(children.get(at, []))
    return found


def _parent(entry: Path) -> int | None:
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return None


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie that nobody reaps does not."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _await_end(reader: Reader, run: str, report: Report) -> None:
    deadline_s = time.monotonic() + END_S
    while (ended := reader.state(run).ended) is None:
        engine = reader.engine()
        if time.monotonic() > deadline_s or engine is None or not engine.alive:
            if reader.state(run).ended is None:
                report.faults.append("the run did not end by itself")
            return
        time.sleep(0.2)
    report.ended = f"{ended.reason}: {ended.detail}"


def _check_story(reader: Reader, run: str, report: Report) -> None:
    """Nothing twice, nothing lost, nothing given back."""
    envelopes = reader.envelopes(run)
    done = Counter((e.event.candidate, e.event.rung) for e in envelopes if isinstance(e.event, RungCompleted))
    admitted = Counter(e.event.candidate.source_sha for e in envelopes if isinstance(e.event, CandidateAdmitted))
    report.n_evaluations, report.n_candidates = len(done), len(admitted)
    limit = reader.state(run).budget.candidates
    if limit is not None and len(admitted) > limit:
        report.faults.append(f"{len(admitted)} candidates admitted of {limit} allowed")
    report.faults += [f"evaluated {n} times: {key}" for key, n in done.items() if n > 1]
    report.faults += [f"admitted {n} times: {sha}" for sha, n in admitted.items() if n > 1]
    if [e.seq for e in envelopes] != list(range(len(envelopes))):
        report.faults.append("the events are not numbered without gaps")
    spent = [(e.wall_s, e.gpu_s) for e in envelopes]
    if any(later[0] < before[0] or later[1] < before[1] for before, later in itertools.pairwise(spent)):
        report.faults.append("a budget that was spent came back")
    resumed = sum(1 for e in envelopes if isinstance(e.event, RunResumed))
    if resumed != report.n_resumes:
        report.faults.append(f"{report.n_resumes} resumes, {resumed} in the ledger")


def _check_stores(workspace: Path, report: Report) -> None:
    git_dir = workspace / "kernels.git"
    fsck = subprocess.run(
        ["git", f"--git-dir={git_dir}", "fsck", "--strict", "--no-dangling"],
        capture_output=True,
        text=True,
        check=False,
    )
    if fsck.returncode != 0:
        report.faults.append(f"git fsck: {fsck.stdout}{fsck.stderr}")
    with sqlite3.connect(workspace / "index.sqlite") as index:
        said = index.execute("PRAGMA integrity_check").fetchone()[0]
    if said != "ok":
        report.faults.append(f"integrity_check: {said}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", default="softmax")
    parser.add_argument("--device", default="model:a100")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--candidates", type=int, default=20)
    parser.add_argument("--longest", type=float, default=12.0, help="seconds an engine lives at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kbtui-kill-") as folder:
        report = run_campaign(
            Path(folder), args.problem, args.device, args.kills, args.seed, args.candidates, args.longest
        )
    text = json.dumps(asdict(report), indent=2, ensure_ascii=False)
    print(text)
    if args.out:
        args.out.write_text(text + "\n")
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
