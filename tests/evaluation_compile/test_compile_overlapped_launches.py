"""A kernel that is launched early on Hopper and waits for the one before it runs in the interpreter all the same."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = """
import torch, triton, triton.language as tl
from kbtui.domain.device import DATA_SHEETS
from kbtui.evaluation.compile.interpreted import InterpretedGpu
gpu = InterpretedGpu(DATA_SHEETS["h200"])
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

@triton.jit
def first(x_ptr):
    gdc_launch_dependents()
    tl.store(x_ptr, 2.0)

@triton.jit
def second(x_ptr):
    gdc_wait()
    tl.store(x_ptr, 3.0 * tl.load(x_ptr))

@triton.jit
def third(x_ptr):
    tl.extra.cuda.gdc_wait()
    tl.store(x_ptr, 1.0 + tl.load(x_ptr))

with gpu():
    x = torch.zeros(1, device="cuda")
    first[(1,)](x)
    second[(1,)](x, launch_pdl=True)
    third[(1,)](x, launch_pdl=True)
print(float(x[0]))
"""


def test_dependent_launches_run_one_after_another(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(ROOT)}

    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment, timeout=120)

    assert ran.stdout.strip() == "7.0", ran.stderr[-800:]
