"""Many candidates in a row, one in five hostile: verdicts are right and nothing is left behind."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from kbtui.domain.device import DATA_SHEETS
from kbtui.domain.evaluation import EvaluationRequest
from kbtui.domain.problem import Problem
from kbtui.domain.rung import COMPILE, DEFAULT_LADDER, SCREEN
from kbtui.domain.verdict import Verdict
from kbtui.evaluation.devices.model import ModelDevice
from kbtui.evaluation.nvml import parent_of

ENTRY = "\n\ndef kernel_function(x):\n"
#: Within the policy, for what is outside never runs.
HOSTILE = (
    "    return kernel_function(x)\n",
    "    raise KeyboardInterrupt\n",
    "    while True:\n        print('x' * 100000)\n",
    "    return torch.zeros_like(x)\n",
    "    hog = []\n    while True:\n        hog.append(b'x' * (1 << 28))\n",
    "    raise SystemExit(0)\n",
)


@dataclass(frozen=True)
class Held:
    """What this process and its zygotes hold: descriptors, processes, files below the workspace's scratch."""

    fds: int
    processes: int
    files: int

    def within(self, other: "Held") -> bool:
        return self.fds <= other.fds and self.processes <= other.processes and self.files <= other.files


def held(root: Path) -> Held:
    pids = [int(p) for p in os.listdir("/proc") if p.isdigit()]
    zygotes = {p for p in pids if parent_of(p) == os.getpid()}
    children = [p for p in pids if parent_of(p) in zygotes]
    fds = sum(len(os.listdir(f"/proc/{p}/fd")) for p in (os.getpid(), *zygotes))
    files = sum(len(names) for _, _, names in os.walk(root / "scratch"))
    return Held(fds, len(zygotes) + len(children), files)


def resident_mib() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def until(take: Callable[[], Held], enough: Callable[[Held], bool], timeout_s: float = 5.0) -> Held:
    deadline = time.monotonic() + timeout_s
    while not enough(now := take()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return now


def still(root: Path) -> Held:
    """What is held once two looks agree: spares come and go."""
    looks = [held(root)]
    return until(lambda: looks.append(held(root)) or looks[-1], lambda now: now == looks[-2])  # type: ignore[func-returns-value]


@pytest.fixture
def device(softmax: Problem, tmp_path: Path) -> Iterator[ModelDevice]:
    model = ModelDevice(DATA_SHEETS["a100"], tmp_path)
    model.open(softmax)
    yield model
    model.close()


def evaluate(device: ModelDevice, source: str) -> Verdict:
    for rung in (COMPILE, SCREEN):
        request = EvaluationRequest("c0002", source, DEFAULT_LADDER[rung], 0, rung - 1, None, None)
        verdict = device.evaluate(request, lambda _: None).outcome.verdict
        if not verdict.ok:
            break
    return verdict


@pytest.mark.parametrize("n_candidates", [15, pytest.param(200, marks=pytest.mark.slow)])
def test_nothing_is_left_after_many_candidates(
    device: ModelDevice, planted: ModuleType, tmp_path: Path, n_candidates: int
) -> None:
    good = planted.one_pass(8)
    assert evaluate(device, good + "\n# warm").ok
    before, before_mib = still(tmp_path), resident_mib()
    for number in range(n_candidates):
        hostile = number % 5 == 4
        body = ENTRY + HOSTILE[number // 5 % len(HOSTILE)] if hostile else ""
        verdict = evaluate(device, f"{good}{body}\n# {number}\n")
        assert verdict.ok is not hostile, (number, verdict)
    assert until(lambda: held(tmp_path), lambda now: now.within(before)).within(before), (before, held(tmp_path))
    assert resident_mib() < before_mib + 20 + n_candidates // 5


def test_a_search_goes_on_after_its_zygotes_are_killed(device: ModelDevice, planted: ModuleType) -> None:
    assert evaluate(device, planted.one_pass(8)).ok
    for pid in [int(p) for p in os.listdir("/proc") if p.isdigit() and parent_of(int(p)) == os.getpid()]:
        os.kill(pid, signal.SIGKILL)
    for warps in (4, 16):
        verdict = evaluate(device, planted.one_pass(warps))
        assert verdict.ok, verdict
