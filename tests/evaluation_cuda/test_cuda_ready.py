"""Baselines that are started once before anything is timed, and who forks those that use torch.compile."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kbtui.errors import EngineError
from kbtui.evaluation.baselines import NAMES
from kbtui.evaluation.devices import cuda
from kbtui.evaluation.devices.cuda import CudaDevice
from kbtui.evaluation.devices.cuda_opened import OpenedProblem
from kbtui.evaluation.devices.cuda_sides import OpponentError, Side, Sides
from kbtui.evaluation.gpu_lock import GpuLock
from kbtui.evaluation.process import Worker


class Stage:
    """Sides and zygote in one: who was started, whether it was quiet then, and what each left behind."""

    def __init__(self, missing: str = "") -> None:
        self.missing, self.is_quiet = missing, False
        self.started: list[tuple[str, bool]] = []
        self.killed = 0

    def baseline(self, name: str, n_threads: int) -> Any:
        assert n_threads >= 1
        self.started.append((name, self.is_quiet))
        if name == self.missing:
            raise OpponentError(f"{name}: ImportError: it is not installed")
        return SimpleNamespace(worker=self)

    def kill(self) -> None:
        self.killed += 1

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        self.is_quiet = True
        yield
        self.is_quiet = False


def device_on(stage: Stage, root: Path) -> CudaDevice:
    device = CudaDevice.__new__(CudaDevice)
    device._lock = GpuLock("stand-in", root)
    no: Any = None
    device._opened = OpenedProblem(no, no, 0, root, stage, no, stage, no, no, 1, ())  # type: ignore[arg-type]
    return device


def test_who_chooses_by_times_of_its_own_is_started_alone_and_in_the_quiet(tmp_path: Path) -> None:
    stage = Stage(missing="liger")
    device = device_on(stage, tmp_path)
    found = device.ready(NAMES)
    assert [b.name for b in found] == list(NAMES)
    assert stage.started[-3:] == [("max-autotune", True), ("max-autotune-no-cudagraphs", True), ("flaggems", True)]
    assert sorted(stage.started[:-3]) == [("compile", False), ("liger", False)]
    assert stage.killed == 4


def test_what_could_be_started_is_compared_with_from_then_on(tmp_path: Path) -> None:
    device = device_on(Stage(missing="liger"), tmp_path)
    found = device.ready(("eager", "liger", "copy"))
    assert [b.error for b in found] == [None, "liger: ImportError: it is not installed", None]
    device.ready(("max-autotune", "copy"))
    assert device._opened is not None
    assert device._opened.baselines == ("eager", "copy", "max-autotune")


def test_a_device_that_cannot_start_all_that_starts_children_leaves_none_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    def zygote(log: Path, **_: object) -> Any:
        if made:
            raise OSError(28, "No space left on device")
        made.append(SimpleNamespace(is_closed=False, close=lambda: setattr(made[0], "is_closed", True)))
        return made[0]

    monkeypatch.setattr(cuda, "Zygote", zygote)
    with pytest.raises(OSError, match="No space left"):
        CudaDevice("cuda:0", tmp_path, baselines=("compile",))
    assert made[0].is_closed


def test_nothing_is_readied_before_a_problem_is_open(tmp_path: Path) -> None:
    device = device_on(Stage(), tmp_path)
    device._opened = None
    with pytest.raises(EngineError, match="no problem is open"):
        device.ready(("compile",))


class Child:
    def __init__(self, name: str) -> None:
        self.name, self.asked = name, dict[str, Any]()

    def call(self, method: str, **params: Any) -> None:
        self.asked[method] = params

    def kill(self) -> None: ...


class Forks:
    """A zygote; ``broken``: its children cannot be had."""

    def __init__(self, name: str, broken: bool = False) -> None:
        self.name, self.broken = name, broken
        self.born: list[Child] = []

    def spawn(self, role: str, *, sandbox: object) -> Child:
        if self.broken:
            raise EngineError("the process that starts children is gone", "run again")
        self.born.append(Child(self.name))
        return self.born[-1]


class NoReferee(Sides):
    @property
    def referee(self) -> Any:
        return None

    def _show_arena(self, worker: Worker, client: object) -> None: ...


def started(plain: Forks, compiling: Forks | None, name: str, problem: Any) -> Side:
    policy: Any = None
    sides = NoReferee(plain, problem, policy, Path, 1 << 30, 5.0, compiling=compiling)  # type: ignore[arg-type]
    return sides.baseline(name, 4)


@pytest.fixture
def problem() -> Any:
    from softmax_problem import make_problem

    return make_problem(rows=2)


def test_torch_compile_is_forked_where_it_is_imported_and_all_else_where_candidates_are(problem: Any) -> None:
    for name, forked_by in (("max-autotune", "compiling"), ("eager", "plain"), ("liger", "plain")):
        side = started(Forks("plain"), Forks("compiling"), name, problem)
        assert side.worker.name == forked_by  # type: ignore[attr-defined]
        assert side.worker.asked["open"]["n_threads"] == 4  # type: ignore[attr-defined]


def test_where_that_cannot_be_had_it_is_imported_by_the_child_itself(problem: Any) -> None:
    for compiling in (None, Forks("compiling", broken=True)):
        assert started(Forks("plain"), compiling, "compile", problem).worker.name == "plain"  # type: ignore[attr-defined]
