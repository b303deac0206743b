"""A small run with everything in it, a real git as a user would call it, and processes that really die."""

import os
import signal
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kbtui.domain.candidate import Attachment, Candidate, Origin, candidate_id, source_sha
from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.evaluation import Baseline, ProblemReport, RungOutcome
from kbtui.domain.event import (
    Budget,
    CandidateAdmitted,
    ChildEntry,
    CommandAccepted,
    CommandKind,
    Decision,
    EndReason,
    ProblemOpened,
    ProposalsMade,
    RunEnded,
    RungCompleted,
    RunStarted,
)
from kbtui.domain.measurement import Clock, Comparison, Measurement, Outcome, ShapeTiming
from kbtui.domain.rung import DEFAULT_LADDER
from kbtui.domain.verdict import Proof, Reason, rejected, verified
from store.record import RunLedger, create_run
from store.workspace import Workspace, create_workspace

LINES = [f"line_{n} = {n}" for n in range(8)]
#: Parent of each candidate by number, how its line of the source reads, and whether it becomes the best.
LINEAGE = ((1, None, True), (2, 1, False), (3, 1, True), (4, 3, True))


class Ticking:
    """A clock that moves by a second a call, from one fixed start."""

    def __init__(self) -> None:
        self.at = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.at += timedelta(seconds=1)
        return self.at


def run_started() -> RunStarted:
    return RunStarted(
        run="",
        problem="softmax",
        problem_path="sample_kernels/softmax",
        problem_sha="ab" * 32,
        device=DATA_SHEETS["a100"],
        seed=0,
        budget=Budget(wall_s=600),
        generators=("playbook", "rewrites"),
        model=None,
        child_entry=ChildEntry.PARENT,
        ladder=DEFAULT_LADDER,
    )


def measurement(ratio: float) -> Measurement:
    timing = ShapeTiming("4096x16384", 100.0 / ratio, 99.0 / ratio, 101.0 / ratio, 20, 120.0)
    first = Comparison("first", Outcome.FASTER, ratio, ratio - 0.02, ratio + 0.02, 0.99, 20, 3)
    return Measurement(Clock.MEASURED, (timing,), (first,))


def kernel(number: int, parent: int | None) -> str:
    """A source whose line ``number`` was changed by this candidate; the other lines are its parent's."""
    lines = kernel(parent, {n: p for n, p, _ in LINEAGE}[parent]).splitlines() if parent else list(LINES)
    lines[number] = f"line_{number} = {number}  # by candidate {number}"
    return "\n".join(lines) + "\n"


def admit(ledger: RunLedger, number: int, parent: int | None, commits: dict[int, str]) -> None:
    source = kernel(number, parent)
    parents = (candidate_id(parent),) if parent else ()
    origin = Origin("seed", "first") if parent is None else Origin("playbook", "online_softmax", "several_rows")
    candidate = Candidate(
        candidate_id(number), source_sha(source), parents, origin, "softmax/online", f"online softmax {number}"
    )
    trailers = (("Generator", origin.generator), ("Operator", origin.operator), ("Hint", origin.hint or ""))
    oids = (commits[parent],) if parent else ()
    commits[number] = ledger.commit_candidate(number, source, oids, candidate.summary, trailers)
    prompt = (Attachment("prompt.txt", f"make {number} faster".encode()),)
    ledger.append(CandidateAdmitted(candidate, 1, commits[number]), number, 0.0, prompt)


def complete(ledger: RunLedger, number: int, best: bool, commit: str) -> None:
    ratio = 1.0 + number / 10
    outcome = RungOutcome(verified(2, Proof.GPU, error=1e-7), 0.5, 1.0, measurement=measurement(ratio))
    decision = Decision.PROMOTE if best else Decision.PRUNE
    event = RungCompleted(candidate_id(number), 2, outcome, decision, "+6 % over c0001", ratio, best)
    samples = (Attachment("samples.csv", b"us\n%d\n" % number),)
    ledger.append(event, number + 0.5, float(number), samples, commit if best else None)


def tell(ledger: RunLedger) -> dict[int, str]:
    """Append a whole short story to a fresh run; returns the candidates' commits by number."""
    commits: dict[int, str] = {}
    ledger.append(ProblemOpened(ProblemReport("row_reduction", (Baseline("eager", measurement(1.0)),))), 0.1, 0.0)
    for number, parent, best in LINEAGE:
        admit(ledger, number, parent, commits)
        ledger.append(ProposalsMade("playbook", candidate_id(parent) if parent else None, 1, 0, False, 0.1), number, 0)
        complete(ledger, number, best, commits[number])
    failed = RungOutcome(rejected(Reason.WRONG_VALUES, 1, Proof.GPU, "relative L2 error 0.34"), 0.1, 0.2)
    ledger.append(RungCompleted("c0002", 3, failed, Decision.REJECT, "relative L2 error 0.34", None, False), 6, 6)
    ledger.append(CommandAccepted(1, CommandKind.PAUSE, note="lunch"), 7, 6)
    ledger.append(RunEnded(EndReason.BUDGET, "10m spent"), 8, 6)
    return commits


@pytest.fixture(autouse=True)
def home_without_git_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The developer's own git world stays out of the tests; what a test wants of one it sets itself."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    (tmp_path / "home").mkdir()


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return create_workspace(tmp_path / "ws")


@pytest.fixture
def told(workspace: Workspace) -> tuple[Workspace, str, dict[int, str]]:
    """A workspace with one whole run in it, closed: workspace, the run's name, the candidates' commits."""
    ledger = create_run(workspace, run_started(), now=Ticking())
    commits = tell(ledger)
    ledger.close()
    return workspace, ledger.run, commits


@pytest.fixture
def git() -> Callable[..., str]:
    """Git as a user types it, in their environment; fails the test where git fails."""

    def call(where: Path, *args: str) -> str:
        done = subprocess.run(["git", "-C", str(where), *args], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"git {' '.join(args)}: {done.stderr}"
        return done.stdout

    return call


@pytest.fixture
def in_child() -> Callable[[Callable[[], None]], int]:
    """Run something in a forked process and return the signal that ended it, 0 where none did."""

    def call(action: Callable[[], None]) -> int:
        pid = os.fork()
        if pid == 0:
            try:
                action()
                os._exit(0)
            except BaseException:
                os._exit(70)
        _, status = os.waitpid(pid, 0)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the child raised"
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0

    return call


@pytest.fixture
def scene() -> "type[Scene]":
    return Scene


class Scene:
    """The helpers above, for tests that cannot import this file."""

    Ticking = Ticking
    LINEAGE = LINEAGE
    run_started = staticmethod(run_started)
    kernel = staticmethod(kernel)
    admit = staticmethod(admit)
    complete = staticmethod(complete)
    tell = staticmethod(tell)

    @staticmethod
    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)
