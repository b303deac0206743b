"""What a zygote imports for its children."""

from pathlib import Path

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
