"""Check the kernel in this folder against its reference, then time it. Needs torch and triton, nothing else.

usage: python check.py [--interpreter] [--no-time] [--json]

On a GPU: every shape and every input distribution the search checked, on the same inputs (check.json holds the seeds),
then times on the GPU's own clock with a cold L2 beside PyTorch and the first kernel. Without one, or with
--interpreter: the smaller shapes on the CPU under Triton's interpreter, whose times say nothing about a GPU.

Each answer is compared with the reference in float64. It passes where its relative L2 error is at most
max(2 x the reference's own error in its dtype, the dtype's floor), no single element is far off, NaN and Inf are
where the reference has them, memory that was never written would show, and no input was written to or returned.
The search also ran each kernel in a sandbox and left its launches out to see the answer go wrong; this script,
which trusts the kernel in front of it, does not.

Exit code: 0 all checks passed, 1 one failed, 2 it could not be run.
"""

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

import torch

from kbtui.leaving.alone.kernels import Problem, load_kernel
from kbtui.leaving.alone.small_parts import HERE, device_name, quiet
from kbtui.leaving.alone.times import time_all
from kbtui.leaving.alone.verdicts import check_all


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check and time the kernel in this folder.")
    parser.add_argument("--interpreter", action="store_true", help="on the CPU even where there is a GPU")
    parser.add_argument("--no-time", action="store_true", help="check only")
    parser.add_argument("--json", action="store_true", help="results as JSON on stdout")
    options = parser.parse_args(arguments)
    plan = json.loads((HERE / "check.json").read_text(encoding="utf-8"))
    on_gpu = torch.cuda.is_available() and not options.interpreter
    device, proof = ("cuda", "gpu") if on_gpu else ("cpu", "interpreter")
    if not on_gpu:
        os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported, which the kernel does
    say = quiet if options.json else print
    torch.set_grad_enabled(False)
    say(f"{plan['problem']}: {plan['title']}")
    say(f"on {device_name(device)}, torch {torch.__version__}")
    edited = hashlib.sha256((HERE / plan["kernel"]).read_bytes()).hexdigest() != plan["kernel_sha256"]
    if edited:
        say(f"note: {plan['kernel']} is not as it was exported; what follows is about the edited file")
    problem = Problem(plan, device)
    results = check_all(problem, load_kernel(HERE / plan["kernel"], problem), plan["checks"][proof], say)
    failed = [r for r in results if r["fault"]]
    times: list[dict[str, Any]] = []
    if not failed and not options.no_time:
        times = time_all(problem, plan, proof, say)
    worst = max((r["error"] for r in results), default=0.0)
    verdict = f"FAILED {len(failed)} of {len(results)} checks" if failed else f"PASSED {len(results)} checks"
    say(f"{verdict} by {proof}; largest relative L2 error {worst:.2e}")
    if options.json:
        told = {"passed": not failed, "proof": proof, "edited": edited, "checks": results, "times": times}
        print(json.dumps({**told, "device": device_name(device), "torch": torch.__version__}, indent=1))
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ImportError, KeyError, json.JSONDecodeError) as error:
        print(f"check.py: {type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(2)
