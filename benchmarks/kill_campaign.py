"""Kill the engine with SIGKILL at random moments, resume it, and check that nothing was lost or done twice.

usage: python benchmarks/kill_campaign.py [--problem softmax] [--device replay:POOL] [--kills 200] [--out FILE]

Searches are run, one after another with the next seed, until the engine has been killed often enough. On a replayed
device each is compared with an undisturbed one of the same seed: the same events (sources, parents, outcomes,
decisions with their reasons, scores, budget spent), the same candidate commits but for their dates, the same subjects
and trees on the ledger; the resumes aside. On every device: nothing twice, no gap, no budget given back, no process
left, `git fsck --strict`, `PRAGMA integrity_check`.

Effects: workspaces in a temporary folder, real detached engines, real signals. Prints one JSON document.
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
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kbtui.domain.codec import envelope_to_plain
from kbtui.domain.event import CandidateAdmitted, RungCompleted, RunResumed
from kbtui.errors import UsageError
from store.git_process import run_git
from store.ledger import read_commit, run_names
from store.lock import LockHolder, lock_holder
from store.objects import ObjectStore
from store.reader import Reader
from store.workspace import Workspace, open_workspace

POOL = Path(__file__).parent / "pools" / "softmax-h200-full.jsonl.gz"
START_S = 90.0
END_S = 600.0
GONE_S = 2.0


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
    n_runs: int = 0
    n_events_compared: int = 0
    n_candidates: int = 0
    n_evaluations: int = 0
    killed_while: dict[str, int] = field(default_factory=dict)
    longest_to_vanish_s: float = 0.0
    wall_s: float = 0.0
    faults: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Campaign:
    """What is searched, and how long an engine lives at most; ``pause_ms``: see KBTUI_REPLAY_PAUSE_MS."""

    problem: str
    device: str
    candidates: int
    longest_s: float
    pause_ms: int = 20

    @property
    def replayed(self) -> bool:
        return self.device.startswith("replay:")

    def run_words(self, seed: int) -> tuple[str, ...]:
        limits = ("--candidates", str(self.candidates), "--seed", str(seed))
        return ("run", self.problem, "--device", self.device, *limits)


def kbtui(workspace: Path, *words: str, pause_ms: int = 0) -> "subprocess.Popen[str]":
    env = os.environ | {"KBTUI_REPLAY_PAUSE_MS": str(pause_ms)}
    command = [sys.executable, "-m", "kbtui", *words, "--workspace", str(workspace)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env)


def run_campaign(folder: Path, campaign: Campaign, kills: int, seed: int) -> Report:
    """Searches in ``folder`` until the engine was killed ``kills`` times."""
    words = " ".join(campaign.run_words(seed))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    report = Report(f"kbtui {words} --detach", platform.platform(), now, campaign.device, seed)
    rng, began_s = random.Random(seed), time.monotonic()
    for number in itertools.count():
        if report.n_kills >= kills or report.faults:
            break
        _one_search(folder / f"killed-{number}", campaign, kills, seed + number, rng, report)
        if campaign.replayed:
            _compare(folder, number, campaign, seed + number, report)
    report.wall_s = round(time.monotonic() - began_s, 1)
    return report


def _one_search(root: Path, campaign: Campaign, kills: int, seed: int, rng: random.Random, report: Report) -> None:
    """One search to its end, its engines killed for as long as there are kills left."""
    while not _ended(root) and not report.faults:
        run = _run_of(root)
        words = ("resume", run) if run else campaign.run_words(seed)
        starter = kbtui(root, *words, "--detach", pause_ms=campaign.pause_ms)
        engine = _await_engine(root, starter, report)
        if engine and report.n_kills < kills:
            _kill(root, engine, rng.uniform(0.0, campaign.longest_s), report)
        _, said = starter.communicate()
        if report.n_kills >= kills:
            _await_end(root, report)
        if starter.returncode not in (0, 4):
            report.faults.append(f"exit {starter.returncode}: {said.strip()[-300:]}")
        check_stores(root, report.faults)
    _check_story(root, report)
    report.n_runs += 1


def _run_of(root: Path) -> str | None:
    """The run in a workspace; one that died before its first row was written is indexed first."""
    if not (root / "kernels.git" / "HEAD").exists():
        return None
    names = run_names(root / "kernels.git")
    if names and not _rows(root):
        _must(kbtui(root, "reindex"))
    return names[0] if names else None


def _rows(root: Path) -> list[str]:
    try:
        with Reader(open_workspace(root)) as reader:
            return [row.run for row in reader.runs()]
    except UsageError:  # nothing there yet
        return []


def _ended(root: Path) -> bool:
    try:
        with Reader(open_workspace(root)) as reader:
            return any(row.end_reason for row in reader.runs())
    except UsageError:
        return False


def _must(process: "subprocess.Popen[str]") -> None:
    _, said = process.communicate()
    if process.returncode not in (0, 1):
        raise SystemExit(f"exit {process.returncode}: {said}")


def _await_engine(root: Path, starter: "subprocess.Popen[str]", report: Report) -> LockHolder | None:
    """The engine as soon as it holds the lock; None where it ended before it was seen."""
    deadline_s = time.monotonic() + START_S
    while time.monotonic() < deadline_s:
        holder = lock_holder(root / "engine.lock") if root.exists() else None
        if holder is not None and alive(holder.pid):  # for an instant the lock names the engine before it
            return holder
        if starter.poll() is not None:
            return None
        time.sleep(0.002)
    report.faults.append(f"no engine after {START_S:.0f} s")
    return None


def _kill(root: Path, engine: LockHolder, after_s: float, report: Report) -> None:
    time.sleep(after_s)
    family = descendants(engine.pid)
    if lock_holder(root / "engine.lock") is None or not alive(engine.pid):
        return
    os.kill(engine.pid, signal.SIGKILL)
    killed_s = time.monotonic()
    report.n_kills += 1
    while any(alive(pid) for pid in family) and time.monotonic() - killed_s < 2 * GONE_S:
        time.sleep(0.005)
    gone_s = time.monotonic() - killed_s
    report.longest_to_vanish_s = max(report.longest_to_vanish_s, round(gone_s, 3))
    if gone_s > GONE_S:
        report.faults.append(f"processes lived on for {gone_s:.1f} s after the engine was killed")
    doing = _activity(root, engine.pid)
    report.killed_while[doing] = report.killed_while.get(doing, 0) + 1


def _activity(root: Path, pid: int) -> str:
    if not _rows(root):
        return "before its first event"
    with Reader(open_workspace(root)) as reader:
        engine = reader.engine()
    return engine.activity if engine and engine.pid == pid else "before its first heartbeat"


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


def _await_end(root: Path, report: Report) -> None:
    deadline_s = time.monotonic() + END_S
    while lock_holder(root / "engine.lock") is not None:
        if time.monotonic() > deadline_s:
            report.faults.append("the run did not end by itself")
            return
        time.sleep(0.05)


def _compare(folder: Path, number: int, campaign: Campaign, seed: int, report: Report) -> None:
    """The killed search beside an undisturbed one of the same seed."""
    calm = folder / f"calm-{number}"
    _must(kbtui(calm, *campaign.run_words(seed), "--headless"))
    told, expected = story(calm.with_name(f"killed-{number}")), story(calm)
    report.n_events_compared += len(expected)
    if len(told) != len(expected):
        report.faults.append(f"seed {seed}: {len(told)} events, undisturbed {len(expected)}")
    for position, (mine, theirs) in enumerate(zip(told, expected, strict=False)):
        if mine != theirs:
            report.faults.append(f"seed {seed}, event {position}: {mine} but undisturbed {theirs}"[:2000])
            return


def story(root: Path) -> list[Any]:
    """Everything a run recorded but times of day, resumes, and numbers and commit ids, which follow from those."""
    workspace = open_workspace(root)
    with Reader(workspace) as reader:
        run = reader.runs()[0].run
        envelopes = reader.envelopes(run)
    ledger = run_git("log", "--first-parent", "--reverse", "--format=%T %s", f"runs/{run}", git_dir=workspace.git_dir)
    told = []
    for envelope, line in zip(envelopes, ledger.splitlines(), strict=True):
        if isinstance(envelope.event, RunResumed):
            continue
        plain = envelope_to_plain(envelope)
        del plain["seq"], plain["at"]
        if isinstance(envelope.event, CandidateAdmitted):
            plain["event"]["commit"] = commit_story(workspace, envelope.event.commit)
        told.append((line, plain))
    return told


def commit_story(workspace: Workspace, oid: str) -> tuple[str, str, tuple[Any, ...]]:
    """Tree, message and parents of a candidate's commit, down to the first of its line."""
    objects = ObjectStore(workspace.git_dir)
    try:
        commit = read_commit(objects, oid)
    finally:
        objects.close()
    return commit.tree, commit.message, tuple(commit_story(workspace, parent) for parent in commit.parents)


def _check_story(root: Path, report: Report) -> None:
    """Nothing twice, nothing lost, nothing given back."""
    with Reader(open_workspace(root)) as reader:
        rows = reader.runs()
        if len(rows) != 1:
            report.faults.append(f"{len(rows)} runs in a workspace of one search")
            return
        envelopes, limit = reader.envelopes(rows[0].run), reader.state(rows[0].run).budget.candidates
    done = Counter((e.event.candidate, e.event.rung) for e in envelopes if isinstance(e.event, RungCompleted))
    admitted = Counter(e.event.candidate.source_sha for e in envelopes if isinstance(e.event, CandidateAdmitted))
    report.n_evaluations += len(done)
    report.n_candidates += len(admitted)
    report.n_resumes += sum(1 for e in envelopes if isinstance(e.event, RunResumed))
    if limit is not None and len(admitted) > limit:
        report.faults.append(f"{len(admitted)} candidates admitted of {limit} allowed")
    report.faults += [f"evaluated {n} times: {key}" for key, n in done.items() if n > 1]
    report.faults += [f"admitted {n} times: {sha}" for sha, n in admitted.items() if n > 1]
    if [e.seq for e in envelopes] != list(range(len(envelopes))):
        report.faults.append("the events are not numbered without gaps")
    spent = [(e.wall_s, e.gpu_s) for e in envelopes]
    if any(later[0] < before[0] or later[1] < before[1] for before, later in itertools.pairwise(spent)):
        report.faults.append("a budget that was spent came back")


def check_stores(root: Path, faults: list[str]) -> None:
    """Real git and SQLite look at what a killed engine left."""
    if not (root / "index.sqlite").exists():
        return
    git = ("git", f"--git-dir={root / 'kernels.git'}", "fsck", "--strict", "--no-dangling")
    fsck = subprocess.run(git, capture_output=True, text=True, check=False)
    if fsck.returncode != 0 or fsck.stdout.strip():
        faults.append(f"git fsck: {fsck.stdout}{fsck.stderr}")
    with closing(sqlite3.connect(root / "index.sqlite")) as index:
        said = index.execute("PRAGMA integrity_check").fetchone()[0]
    if said != "ok":
        faults.append(f"integrity_check: {said}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problem", default="softmax")
    parser.add_argument("--device", default=f"replay:{POOL}")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--candidates", type=int, default=40)
    parser.add_argument("--longest", type=float, default=1.0, help="seconds an engine lives at most")
    parser.add_argument("--pause", type=int, default=20, help="milliseconds a replayed evaluation takes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    campaign = Campaign(args.problem, args.device, args.candidates, args.longest, args.pause)
    with tempfile.TemporaryDirectory(prefix="kbtui-kill-") as folder:
        report = run_campaign(Path(folder), campaign, args.kills, args.seed)
    text = json.dumps(asdict(report), indent=2, ensure_ascii=False)
    print(text)
    if args.out:
        args.out.write_text(text + "\n")
    return 1 if report.faults else 0


if __name__ == "__main__":
    sys.exit(main())
