"""A disk that fills up while a candidate is compiled is no fault of the candidate, unless it filled it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.problem import Problem
from kbtui.domain.verdict import Reason, VerdictKind
from kbtui.errors import DiskFullError
from kbtui.evaluation.compile.compiler import Compiler, ProblemInputs
from kbtui.evaluation.process import Zygote
from tests.fakes.disks import fill, small_disk

FILLS_IT = """
import os


def kernel_function(x):
    with open(os.environ["TRITON_CACHE_DIR"] + "/filled", "wb", buffering=0) as file:
        while file.write(bytes(1 << 20)):
            pass
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """40 MB: room for a search, and 300 files."""
    with small_disk(tmp_path / "disk", "size=40m", "nr_inodes=300") as there:
        yield there


@pytest.fixture
def on_disk(disk: Path, torch_zygote: Zygote, softmax: Problem, softmax_inputs: ProblemInputs) -> Iterator[Compiler]:
    with Compiler(torch_zygote, DATA_SHEETS["a100"], softmax, softmax_inputs, disk / "cache", workers=1) as made:
        yield made


@pytest.mark.parametrize("left_kib", [0, 20, 100])
def test_on_a_full_disk_a_good_kernel_is_unverified_and_compiled_anew_with_room(
    on_disk: Compiler, disk: Path, softmax: Problem, left_kib: int
) -> None:
    source, ballast = softmax.kernel_source or "", disk / "ballast"
    fill(ballast, left_kib << 10)
    verdict = on_disk.submit(source).result(timeout=120).verdict
    assert (verdict.kind, verdict.reason) == (VerdictKind.UNVERIFIED, Reason.HARNESS_FAILED), verdict
    assert "only 0 MB are free for" in verdict.detail
    assert "make room" in verdict.detail
    ballast.unlink()
    assert on_disk.submit(source).result(timeout=120).verdict.ok
    assert on_disk.submit(source) is on_disk.submit(source)


def test_a_candidate_that_fills_the_disk_itself_is_rejected(on_disk: Compiler, disk: Path) -> None:
    verdict = on_disk.submit(FILLS_IT).result(timeout=120).verdict
    assert (verdict.kind, verdict.reason) == (VerdictKind.REJECTED, Reason.RAISED), verdict
    assert "No space left" in verdict.detail
    assert list((disk / "cache").iterdir()) == []


def test_what_a_reader_of_the_source_can_see_is_told_on_a_full_disk_too(on_disk: Compiler, disk: Path) -> None:
    fill(disk / "ballast", 20 << 10)
    assert on_disk.submit("x = = 1\n").result(timeout=120).verdict.reason is Reason.SYNTAX


def take_every_file(disk: Path) -> list[Path]:
    """Make files until the disk holds no more of them."""
    files: list[Path] = []
    try:
        while True:
            files.append(disk / f"file{len(files)}")
            files[-1].touch()
    except OSError:
        return files


def test_a_child_that_cannot_be_started_for_want_of_room_says_so_and_is_started_later(disk: Path) -> None:
    with Zygote(disk / "zygote.log", interpret=False, env={"KBTUI_PRELOAD": "none"}) as zygote:
        zygote.spawn("kbtui.evaluation.process.probe", sandbox=None).kill()
        files = take_every_file(disk)
        with pytest.raises(DiskFullError, match=r"no child can be started: .*No space left.*; make room"):
            zygote.spawn("kbtui.evaluation.process.probe", sandbox=None)
        for file in files[:10]:
            file.unlink()
        zygote.spawn("kbtui.evaluation.process.probe", sandbox=None).kill()
