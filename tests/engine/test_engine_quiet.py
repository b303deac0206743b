"""The packer never works while a device times something."""

from dataclasses import dataclass, field

import pytest

from kbtui.domain.evaluation import EvaluationRequest
from kbtui.domain.rung import COMPILE, DEFAULT_LADDER
from kbtui.engine.memory_ledger import MemoryLedger
from kbtui.engine.quiet import QuietDevice, packing_between
from store.packing import Packer
from store.workspace import create_workspace
from tests.fakes.search import PlantedDevice, engine_on


class RecordingPacker(Packer):
    """Says whether it is held, and counts how often it is asked to go on."""

    is_held = False
    n_considered = 0

    def held(self):  # type: ignore[no-untyped-def]
        return self

    def __enter__(self) -> None:
        self.is_held = True

    def __exit__(self, *_: object) -> None:
        self.is_held = False

    def consider(self) -> None:
        assert not self.is_held
        self.n_considered += 1


@dataclass
class WatchingDevice(PlantedDevice):
    """Notes with every call whether the packer was held."""

    packer: RecordingPacker | None = None
    calls: list[tuple[int, bool]] = field(default_factory=list)

    def open(self, problem):  # type: ignore[no-untyped-def]
        assert self.packer is not None
        assert self.packer.is_held
        return super().open(problem)

    def evaluate(self, request: EvaluationRequest, on_sample: object):  # type: ignore[no-untyped-def]
        assert self.packer is not None
        self.calls.append((request.rung.index, self.packer.is_held))
        return super().evaluate(request, on_sample)


@pytest.fixture
def packer(tmp_path) -> RecordingPacker:
    return RecordingPacker(create_workspace(tmp_path / "ws"))


def test_it_stands_still_on_every_rung_that_times_and_only_there(packer):
    device = WatchingDevice(packer=packer)
    ledger = MemoryLedger()
    engine = engine_on(ledger, QuietDevice(device, packer))
    engine._narrate = packing_between(lambda envelope, state: None, packer)
    engine.run()
    assert {held for rung, held in device.calls if rung == COMPILE} == {False}
    assert {held for rung, held in device.calls if rung > COMPILE} == {True}
    assert {rung for rung, _ in device.calls} == {rung.index for rung in DEFAULT_LADDER}
    assert packer.n_considered == len(ledger.log) - 1


def test_it_goes_on_after_a_device_that_raises(packer):
    device = WatchingDevice(packer=packer)
    device.evaluate = None  # type: ignore[method-assign, assignment]
    quiet = QuietDevice(device, packer)
    request = EvaluationRequest("c0001", "structure=0 tune=0", DEFAULT_LADDER[1], 0, -1, None, None)
    with pytest.raises(TypeError):
        quiet.evaluate(request, lambda sample: None)
    assert not packer.is_held
