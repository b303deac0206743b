"""A disk that fills up makes the search wait, saying so; with room again it goes on as if nothing had been."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.kill_campaign import POOL, check_stores, story
from kbtui.domain.event import Budget
from kbtui.engine.session import run_session
from kbtui.engine.spec import RunSpec
from store.reader import Reader
from store.workspace import open_workspace
from tests.fakes.disks import fill, small_disk

SEARCH = RunSpec("", "softmax", f"replay:{POOL}", Budget(candidates=8), seed=1)
TOLD_S = 60.0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """64 MB: twice what a search wants to see free."""
    with small_disk(tmp_path / "disk", "size=64m") as there:
        yield there


class FullAt:
    """Fills the disk the n-th time an event is indexed; ``release`` empties it."""

    def __init__(self, ballast: Path, nth: int, leave_bytes: int) -> None:
        self.ballast, self.left, self.leave_bytes = ballast, nth, leave_bytes
        self.filled = threading.Event()

    def __call__(self, step: str) -> None:
        self.left -= step == "index"
        if step == "index" and self.left == 0:
            fill(self.ballast, self.leave_bytes)
            self.filled.set()


def release_once_told(root: Path, full: FullAt, told: list[str]) -> None:
    """Empty the disk once a viewer is told that the search waits."""
    assert full.filled.wait(TOLD_S)
    with Reader(open_workspace(root)) as reader:
        for _ in range(int(TOLD_S / 0.1)):
            engine = reader.engine()
            if engine and engine.activity.startswith("waiting"):
                told.append(engine.activity)
                break
            threading.Event().wait(0.1)
    full.ballast.unlink()


def search(root: Path, checkpoint: FullAt | None = None) -> None:
    more = {"checkpoint": checkpoint} if checkpoint else {}
    run_session(replace(SEARCH, workspace=str(root)), lambda r: None, lambda e, s: None, lambda engine: None, **more)


#: Events 6 to 11 are one generator's answer; nothing looks for room between them.
@pytest.mark.parametrize(
    ("nth", "leave_bytes", "says"),
    [(20, 20 << 20, "MB are free for"), (7, 0, "no room for ")],
    ids=["little room before an evaluation", "no room in the middle of an answer"],
)
def test_a_full_disk_makes_the_search_wait_and_say_so_and_go_on(nth, leave_bytes, says, disk, tmp_path):
    told: list[str] = []
    full = FullAt(disk / "ballast", nth, leave_bytes)
    watcher = threading.Thread(target=release_once_told, args=(disk / "ws", full, told))
    watcher.start()
    search(disk / "ws", full)
    watcher.join()
    search(tmp_path / "calm")
    assert told, "no viewer was told"
    assert says in told[0]
    assert story(disk / "ws") == story(tmp_path / "calm")
    faults: list[str] = []
    check_stores(disk / "ws", faults)
    assert faults == []
