"""`kbtui bench` through the command line, on a device without a GPU."""

import json
from pathlib import Path

import pytest

from tests.fakes.commands import kbtui

WRONG = """
import torch
import triton
import triton.language as tl


@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)


def kernel_function(x):
    out = torch.empty_like(x)
    copy[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
"""


@pytest.fixture(scope="module")
def benched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("bench")
    same, wrong = folder / "same.py", folder / "wrong.py"
    same.write_text(Path("sample_kernels/softmax/kernel.py").read_text())
    wrong.write_text(WRONG)
    done = kbtui(
        "bench", "softmax", "--kernel", same, "--kernel", wrong, "--device", "model:a100", "--json", "-w", folder / "w"
    )
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def test_bench_times_the_first_kernel_and_every_one_named(benched: dict[str, object]) -> None:
    kernels = {k["kernel"]: k for k in benched["kernels"]}  # type: ignore[attr-defined]
    assert list(kernels) == ["first", "same", "wrong"]
    over = kernels["same"]["measurement"]["comparisons"][0]
    assert (over["against"], over["outcome"]) == ("first", "tie")


def test_bench_times_nothing_that_the_gate_rejects(benched: dict[str, object]) -> None:
    wrong = benched["kernels"][2]  # type: ignore[index]
    assert wrong["verdict"]["kind"] == "rejected"
    assert wrong["measurement"] is None


def test_bench_names_its_clock(benched: dict[str, object]) -> None:
    assert benched["clock"] == "modelled"


def test_bench_of_a_missing_kernel_is_one_line(tmp_path: Path) -> None:
    done = kbtui("bench", "softmax", "--kernel", tmp_path / "none.py", "--device", "model:a100", "-w", tmp_path / "w")
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
