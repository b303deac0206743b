"""What a zygote imports for its children."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from kbtui.evaluation.process import Zygote, preload
from tests.evaluation_process.conftest import ROLES, ROOT


def test_torch_compile_is_imported_for_children_that_use_it_and_no_gpu_is_touched(tmp_path: Path) -> None:
    env = {"PYTHONPATH": f"{ROOT}:{ROLES}", preload.CHOICE: preload.COMPILE}
    with (
        Zygote(tmp_path / "zygote.log", interpret=False, env=env) as zygote,
        zygote.spawn("imported_role", sandbox=None) as worker,
    ):
        found = worker.call("imported", timeout_s=20.0).value
        limited = worker.call("workers_of", timeout_s=20.0, n_threads=3).value
    assert found["compilers"] == ["torch._dynamo", "torch._inductor.compile_fx"]
    assert not found["cuda"]
    assert not found["left_in_environment"]
    assert found["threads"] == 1
    assert limited == 3


@pytest.mark.parametrize("chosen", [None, "0"])
def test_how_somebody_chose_to_look_for_a_gpu_holds_again_afterwards(
    chosen: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    meanwhile: list[str | None] = []

    def absent(name: str) -> None:
        meanwhile.append(os.environ.get(preload._BY_NVML))
        raise ImportError(name)

    monkeypatch.delenv(preload._BY_NVML, raising=False)
    if chosen is not None:
        monkeypatch.setenv(preload._BY_NVML, chosen)
    monkeypatch.setattr(preload, "importlib", SimpleNamespace(import_module=absent))
    preload._load_compilers()
    assert set(meanwhile) == {"1"}
    assert os.environ.get(preload._BY_NVML) == chosen
