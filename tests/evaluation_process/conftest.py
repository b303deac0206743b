from collections.abc import Iterator
from pathlib import Path

import pytest

from kbtui.evaluation.process import SandboxPolicy, Zygote, cpu_policy

ROLES = Path(__file__).parent / "roles_under_test"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def zygote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """Without torch: what is tested here is the process layer alone."""
    env = {"PYTHONPATH": f"{ROOT}:{ROLES}", "KBTUI_PRELOAD": "none", "SECRET_TOKEN": "s3cret"}
    with Zygote(tmp_path_factory.mktemp("zygote") / "zygote.log", interpret=False, env=env) as started:
        yield started


@pytest.fixture(scope="session")
def confined() -> SandboxPolicy:
    return cpu_policy(read=(ROLES,), memory_bytes=512 << 20)
