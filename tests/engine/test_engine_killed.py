"""Engines that really die, on a replayed device: resumed, the run is the undisturbed one in everything but dates."""

import os
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.kill_campaign import POOL, Campaign, Report, check_stores, run_campaign, story
from kbtui.domain.event import Budget
from kbtui.engine.session import run_session
from kbtui.engine.spec import RunSpec
from store.ledger import run_names

STEPS = ("artifacts", "objects", "ref", "rows", "index")
CAMPAIGN = Campaign("softmax", f"replay:{POOL}", candidates=12, longest_s=0.6, pause_ms=20)
SEARCH = RunSpec("", "softmax", f"replay:{POOL}", Budget(candidates=6), seed=1)


@contextmanager
def folder() -> Iterator[Path]:
    """Not pytest's: a campaign leaves thousands of git objects, which nobody wants to keep."""
    with tempfile.TemporaryDirectory(prefix="kbtui-killed-") as name:
        yield Path(name)


class KillAt:
    """Kills the process the n-th time a step is reached; 0 lets it live. Counts every step."""

    def __init__(self, step: str = "", nth: int = 0) -> None:
        self.step, self.nth = step, nth
        self.seen: Counter[str] = Counter()

    def __call__(self, step: str) -> None:
        self.seen[step] += 1
        if step == self.step and self.seen[step] == self.nth:
            os.kill(os.getpid(), signal.SIGKILL)


def search(root: Path, checkpoint: KillAt) -> None:
    """Start the search in this workspace, or resume the one that is there."""
    names = run_names(root / "kernels.git") if (root / "kernels.git").exists() else ()
    spec = replace(SEARCH, workspace=str(root), run=names[0] if names else None, budget_given=not names)
    run_session(spec, lambda run: None, lambda e, s: None, lambda engine: None, checkpoint=checkpoint)


def in_child(action: Callable[[], None]) -> int:
    """The signal that ended a forked process, 0 where none did."""
    pid = os.fork()
    if pid == 0:
        try:
            action()
            os._exit(0)
        except BaseException:
            os._exit(70)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the engine raised"
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


@pytest.fixture(scope="module")
def calm() -> Iterator[tuple[list[object], Counter[str]]]:
    """The undisturbed search: its story, and how often each step was reached."""
    counted = KillAt()
    with folder() as root:
        search(root / "calm", counted)
        yield story(root / "calm"), counted.seen


def check_killed_at(step: str, nth: int, expected: list[object]) -> None:
    with folder() as root:
        assert in_child(lambda: search(root / "ws", KillAt(step, nth))) == signal.SIGKILL
        assert in_child(lambda: search(root / "ws", KillAt())) == 0
        assert story(root / "ws") == expected
        faults: list[str] = []
        check_stores(root / "ws", faults)
        assert faults == []


#: Every step in the middle of the run, one also at its ends; all places of all steps are in the long campaign.
PLACES = [*[(step, 0.6) for step in STEPS], ("ref", 0.0), ("rows", 0.97)]


@pytest.mark.parametrize(("step", "place"), PLACES)
def test_killed_at_a_step_between_git_and_sqlite_it_resumes_to_the_undisturbed_run(step, place, calm):
    expected, seen = calm
    check_killed_at(step, 2 + int(place * (seen[step] - 3)), expected)


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_every_step_of_every_event_it_resumes_to_the_undisturbed_run(step, calm):
    expected, seen = calm
    for nth in range(1, seen[step]):
        check_killed_at(step, nth, expected)


def test_killed_twice_in_the_resume_itself_it_resumes_to_the_undisturbed_run(calm):
    expected, _ = calm
    with folder() as root:
        assert in_child(lambda: search(root / "ws", KillAt("ref", 9))) == signal.SIGKILL
        for step in STEPS:  # the first event of a resume is the resume
            assert in_child(lambda step=step: search(root / "ws", KillAt(step, 1))) == signal.SIGKILL
        assert in_child(lambda: search(root / "ws", KillAt())) == 0
        assert story(root / "ws") == expected


def check_campaign(report: Report, kills: int) -> None:
    assert report.faults == []
    assert report.n_kills == kills
    assert report.n_resumes > kills / 3, "most engines died before they had begun"
    assert report.longest_to_vanish_s < 2.0


@pytest.mark.program("git")
def test_killed_at_5_random_instants_the_searches_end_as_undisturbed_ones_do():
    with folder() as root:
        check_campaign(run_campaign(root, CAMPAIGN, kills=5, seed=7), 5)


@pytest.mark.slow
@pytest.mark.program("git")
def test_killed_at_200_random_instants_the_searches_end_as_undisturbed_ones_do():
    with folder() as root:
        check_campaign(run_campaign(root, replace(CAMPAIGN, candidates=40), kills=200, seed=1000), 200)


def test_two_replays_of_one_seed_tell_one_story_and_another_seed_another():
    with folder() as root:
        for name, seed in (("a", 1), ("b", 1), ("c", 2)):
            spec = replace(SEARCH, workspace=str(root / name), seed=seed)
            run_session(spec, lambda run: None, lambda e, s: None, lambda engine: None)
        assert story(root / "a") == story(root / "b")
        assert story(root / "a") != story(root / "c")
        assert subprocess.run(["git", f"--git-dir={root / 'a' / 'kernels.git'}", "fsck", "--strict"]).returncode == 0
