"""Without the interpreter's overflow checks a kernel answers the same, bit for bit, at half the operations."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = """
import json
import numpy as np
import torch, triton, triton.language as tl
from triton.runtime.interpreter import InterpreterBuilder
from kbtui.evaluation.compile.interpreted import skip_overflow_checks

@triton.jit
def hashed(out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = at * 73244475 + 40503
    x = (x ^ (x >> 7)) * 668265263 - at
    tl.store(out_ptr + at, x, mask=at < n)

n_operations = 0
real = InterpreterBuilder.binary_op
def counted(*args):
    global n_operations
    n_operations += 1
    return real(*args)
InterpreterBuilder.binary_op = counted

answers, counts = [], []
for _ in range(2):
    out, n_operations = torch.zeros(1000, dtype=torch.int32), 0
    with np.errstate(over="ignore"):
        hashed[(8,)](out, 1000, BLOCK=128)
    answers.append(out), counts.append(n_operations)
    skip_overflow_checks()
print(json.dumps({"same": torch.equal(*answers), "counts": counts}))
"""


def test_kernels_that_wrap_around_answer_as_before_in_half_the_operations(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}

    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, env=environment)

    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout)
    assert told["same"]
    before, after = told["counts"]
    assert after <= 0.6 * before
