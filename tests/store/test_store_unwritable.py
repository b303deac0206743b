"""A disk that is full, or mounted read-only: what can be read is read, every write is refused in one line."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbtui.cli import app
from kbtui.cli_guard import guarded
from kbtui.errors import DiskFullError
from kbtui.room import need_room
from store.lock import EngineLock
from store.record import create_run
from store.workspace import create_workspace

POOL = Path(__file__).parents[2] / "benchmarks/pools/softmax-h200-full.jsonl.gz"
#: What compiles or checks kernels in the workspace.
WORKS = (
    ("run", "softmax", "--headless", "--device", "model:a100"),
    ("resume", "--headless", "--budget", "9s"),
    ("verify", "softmax", "--device", "model:a100"),
    ("verify", "bench.py", "--harden", "--device", "model:a100"),
    ("bench", "softmax", "--device", "model:a100"),
    ("profile", "softmax", "--device", "model:a100"),
)
READS = (("ls",), ("log",), ("show",), ("diff",), ("best",), ("status",))
WRITES = (
    ("submit", "other.py"),
    ("reindex",),
    ("import", "elsewhere"),
    ("export", "--into", "{disk}/out"),
    ("report", "--out", "{disk}/r.html"),
    ("resume", "--headless", "--budget", "9s"),
    ("resume", "--detach", "--budget", "9s"),
    ("run", "softmax", "--headless", "--device", f"replay:{POOL}"),
    ("run", "softmax", "--detach", "--device", f"replay:{POOL}"),
)
NO_ROOM = re.compile(r"only \d MB are free for .*; make room \(32 MB\), then try again")
KERNELBENCH = """\
import torch

n = 64


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2


def get_inputs():
    return [torch.rand(n)]


def get_init_inputs():
    return []
"""


def mount(disk: Path, *options: str) -> None:
    done = subprocess.run(["mount", *options, str(disk)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")


@pytest.fixture
def disk(tmp_path, scene, monkeypatch) -> Iterator[Path]:
    """4 MB of tmpfs with a workspace of one run in it, and another workspace elsewhere."""
    there = tmp_path / "disk"
    there.mkdir()
    mount(there, "-t", "tmpfs", "-o", "size=4m", "tmpfs")
    try:
        for root in (there / "ws", tmp_path / "elsewhere"):
            ledger = create_run(create_workspace(root), scene.run_started())
            scene.tell(ledger)
            ledger.close()
        (tmp_path / "bench.py").write_text(KERNELBENCH)
        (tmp_path / "other.py").write_text("def kernel_function(x):\n    return x\n")
        monkeypatch.chdir(tmp_path)
        yield there
    finally:
        subprocess.run(["umount", "-l", str(there)], check=True)


@pytest.fixture
def read_only(disk: Path) -> Path:
    mount(disk, "-o", "remount,ro")
    return disk


@pytest.fixture
def full(disk: Path) -> Path:
    with (disk / "ballast").open("wb", buffering=0) as ballast:
        try:
            while ballast.write(b"\0" * 4096):
                pass
        except OSError:
            pass
    return disk


def call(disk: Path, words: tuple[str, ...]) -> int:
    return guarded(app, [*(word.replace("{disk}", str(disk)) for word in words), "--workspace", str(disk / "ws")])


def refusal(disk: Path, words: tuple[str, ...], capfd: pytest.CaptureFixture[str]) -> str:
    code = call(disk, words)
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith("kbtui: ")]
    assert len(said) == 1
    assert "defect" not in said[0]
    assert "; " in said[0], "it does not say what to do"
    assert code in (2, 4), said[0]
    return said[0]


@pytest.mark.parametrize("words", READS, ids=" ".join)
def test_a_run_on_a_disk_mounted_read_only_is_read_like_any_other(read_only, words, capfd):
    assert call(read_only, words) in (0, 1)
    assert capfd.readouterr().out


@pytest.mark.parametrize("words", WRITES, ids=lambda words: " ".join(words[:3]))
def test_a_write_to_a_disk_mounted_read_only_is_refused_in_one_line(read_only, words, capfd):
    said = refusal(read_only, words, capfd)
    assert "ead-only" in said or "where the workspace can be written" in said


@pytest.mark.parametrize("words", WORKS, ids=lambda words: " ".join(words[:3]))
def test_no_kernel_is_judged_where_there_is_no_room_to_compile_it(disk, words, capfd):
    assert NO_ROOM.search(refusal(disk, words, capfd))


def test_verify_on_a_full_disk_says_so_in_one_line(full, capfd):
    assert NO_ROOM.search(refusal(full, ("verify", "softmax", "--device", "model:a100"), capfd))


def test_a_file_system_that_counts_no_blocks_is_not_taken_for_full(tmp_path):
    mount(tmp_path, "-t", "ramfs", "ramfs")
    try:
        assert shutil.disk_usage(tmp_path).free == 0
        need_room(tmp_path / "a workspace that is not there yet")
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)


@pytest.mark.parametrize("words", WRITES, ids=lambda words: " ".join(words[:3]))
def test_a_write_to_a_full_disk_is_refused_in_one_line(full, words, capfd):
    said = refusal(full, words, capfd)
    assert "room" in said or "No space left" in said


def test_the_engines_lock_on_a_full_disk_says_so_and_is_not_held(full):
    with pytest.raises(DiskFullError, match=r"no room to write .*engine.lock.*; make room"):
        EngineLock(full / "ws" / "engine.lock").acquire()
    (full / "ballast").unlink()
    EngineLock(full / "ws" / "engine.lock").acquire().release()
