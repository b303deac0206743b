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
    "    raise KeyboardInterrupt\n",
    "    while True:\n        print('x' * 100000)\n",
    "    return kernel_function(x)\n",
    "    return torch.zeros_like(x)\n",
    "    hog = []\n    while True:\n        hog.append(b'x' * (1 << 28))\n",
    "    raise SystemExit(0)\n",
)


@dataclass(frozen=True)
class Held:
    """What this process and the device's zygotes hold: descriptors, processes, files below the device's scratch."""

    fds: int
    processes: int
    files: int

    def within(self, other: "Held") -> bool:
        return self.fds <= other.fds and self.processes <= other.processes and self.files <= other.files


def children_of(pid: int) -> set[int]:
    return {int(p) for p in os.listdir("/proc") if p.isdigit() and parent_of(int(p)) == pid}


@dataclass(frozen=True)
class Opened:
    """A device, the folder it keeps its things in, and the processes of this one that are other tests'."""

    device: ModelDevice
    root: Path
    others: frozenset[int]

    def zygotes(self) -> set[int]:
        return children_of(os.getpid()) - self.others

    def held(self) -> Held:
        zygotes = self.zygotes()
        n_processes = len(zygotes) + sum(len(children_of(pid)) for pid in zygotes)
        fds = sum(len(os.listdir(f"/proc/{p}/fd")) for p in (os.getpid(), *zygotes))
        return Held(fds, n_processes, sum(len(names) for _, _, names in os.walk(self.root / "scratch")))


def resident_mib() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def until(take: Callable[[], Held], enough: Callable[[Held], bool], timeout_s: float = 5.0) -> Held:
    deadline = time.monotonic() + timeout_s
    while not enough(now := take()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return now


def still(take: Callable[[], Held]) -> Held:
    """What is held once two looks agree: spares come and go."""
    looks = [take()]
    return until(lambda: looks.append(take()) or looks[-1], lambda now: now == looks[-2])  # type: ignore[func-returns-value]


@pytest.fixture(scope="module")
def opened(softmax: Problem, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    root, others = tmp_path_factory.mktemp("device"), frozenset(children_of(os.getpid()))
    model = ModelDevice(DATA_SHEETS["a100"], root)
    model.open(softmax)
    yield Opened(model, root, others)
    model.close()


def evaluate(device: ModelDevice, source: str) -> Verdict:
    for rung in (COMPILE, SCREEN):
        request = EvaluationRequest("c0002", source, DEFAULT_LADDER[rung], 0, rung - 1, None, None)
        verdict = device.evaluate(request, lambda _: None).outcome.verdict
        if not verdict.ok:
            break
    return verdict


#: A few, of which one ends itself and one only talks; or many, one in five hostile in every way.
@pytest.mark.parametrize(("n_candidates", "every"), [(8, 3), pytest.param(200, 5, marks=pytest.mark.slow)])
def test_nothing_is_left_after_many_candidates(
    opened: Opened, planted: ModuleType, n_candidates: int, every: int
) -> None:
    good = planted.one_pass(8)
    assert evaluate(opened.device, good + "\n# warm").ok
    before, before_mib = still(opened.held), resident_mib()
    for number in range(n_candidates):
        hostile = number % every == every - 1
        body = ENTRY + HOSTILE[number // every % len(HOSTILE)] if hostile else ""
        verdict = evaluate(opened.device, f"{good}{body}\n# {number}\n")
        assert verdict.ok is not hostile, (number, verdict)
    assert until(opened.held, lambda now: now.within(before)).within(before), (before, opened.held())
    assert resident_mib() < before_mib + 20 + n_candidates // 5


def test_a_search_goes_on_after_its_zygotes_are_killed(opened: Opened, planted: ModuleType) -> None:
    assert evaluate(opened.device, planted.one_pass(8)).ok
    zygotes = opened.zygotes()
    assert len(zygotes) >= 2
    for pid in zygotes:
        os.kill(pid, signal.SIGKILL)
    for warps in (4, 16):
        verdict = evaluate(opened.device, planted.one_pass(warps))
        assert verdict.ok, verdict
