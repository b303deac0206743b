"""Children must not import torch's compiler: it takes seconds, five where bytecode cannot be written."""

import subprocess
import sys

import pytest

WARM_TRACER = "from kbtui.evaluation.modelled import role; role.warm(())"
WATCHED_CALL = (
    "import torch; from kbtui.evaluation.roles.guard import Watch\nwith Watch('cpu'): torch.empty(3).fill_(1.0)"
)


@pytest.mark.parametrize("work", [WARM_TRACER, WATCHED_CALL], ids=["tracer", "gate"])
def test_a_dispatch_mode_does_not_bring_the_compiler(work: str) -> None:
    program = f"{work}\nimport sys; sys.exit('torch._dynamo' in sys.modules)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env={"TRITON_INTERPRET": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
