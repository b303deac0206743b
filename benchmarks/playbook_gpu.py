"""Every playbook entry on a GPU: right on every shape of its problem, and its time beside PyTorch eager's.

Run from the repository's root on a machine with an NVIDIA GPU:
``python benchmarks/playbook_gpu.py --device cuda:0 --out FILE [--problems a,b] [--tiles 6] [--seconds 190]``.
Each entry runs at its defaults and at a seeded few of the tiles beside them, or at all combinations of the values that
``--points "ENTRY TILE=4096,8192 STAGES=1,2"`` names (more than once for more of them). Three steps, each within its
share of the seconds: (1) workers in parallel compile an instantiation and hold it against a float64 oracle on all
shapes, hidden ones too; (2) one worker times what passed by kbtui's loop, cold L2, to rank the tiles (``quick_us``);
(3) each entry's defaults and each problem's fastest go through the whole gate, as ``kbtui verify`` runs it, and who
passes is timed in turns with PyTorch eager in two pairs of fresh processes, as ``kbtui bench`` does (``times_us``).
Eager is timed nowhere else: in one long-lived process, and a CUDA graph, the same call took from 1.05 to 2.65 ms where
outputs were 1 GiB. A worker that hangs or dies is replaced and the instantiation says so. Effects: writes FILE (JSON),
starts processes.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.playbook.gate import gate_all
from benchmarks.playbook.jobs import work
from benchmarks.playbook.points import all_rows, in_dtype
from benchmarks.playbook.rows import printed
from benchmarks.playbook.workers import check_all, time_all
from kbtui.domain.device import closest_data_sheet
from kbtui.evaluation.devices.cuda_chip import visible_device

PROBLEMS = ("linear_relu_div", "group_conv", "sdp_attn", "softmax", "rms_norm", "mat_vec")
#: As a worker.
ITSELF = (sys.executable, __file__, "--worker")


def machine(index: str) -> dict[str, str]:
    query = ["nvidia-smi", f"--id={index}", "--format=csv,noheader",
             "--query-gpu=name,driver_version,clocks.sm,clocks.mem,power.limit"]  # fmt: skip
    said = subprocess.run(query, capture_output=True, text=True).stdout.strip()
    return {
        "gpu": said,
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime()),
    }


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--dtype", default="", help="all shapes in this one, in place of the problem's own")
    parser.add_argument("--only", default="", help="entries whose name contains one of these")
    parser.add_argument("--tiles", type=int, default=6, help="instantiations beside the defaults")
    parser.add_argument("--points", action="append", default=[], help="an entry and values, in place of its tiles")
    parser.add_argument("--workers", type=int, default=12, help="processes that compile and check")
    parser.add_argument("--seconds", type=float, default=190.0)
    given = parser.parse_args(words)
    if given.worker:
        return work()
    if given.out is None:
        parser.error("the following arguments are required: --out")
    began = time.monotonic()
    index = visible_device(int(given.device.partition(":")[2] or 0), os.environ)
    facts = machine(index)
    chip = closest_data_sheet(facts["gpu"].split(",")[0], 90)
    with tempfile.TemporaryDirectory(prefix="playbook-gpu-") as folder:
        os.environ.setdefault("TRITON_CACHE_DIR", f"{folder}/cache")
        problems = given.problems.split(",")
        if given.dtype:
            problems = [in_dtype(problem, given.dtype, Path(folder)) for problem in problems]
        rows = all_rows(problems, given.tiles, chip, Path(folder), given.only.split(","), given.points)

        def save() -> None:
            shown = [
                {k: v for k, v in row.items() if k != "path"} | {"problem": Path(row["problem"]).name} for row in rows
            ]
            command = f"python benchmarks/playbook_gpu.py {' '.join(sys.argv[1:] if words is None else words)}"
            given.out.write_text(json.dumps({"command": command, "machine": facts, "rows": shown}, indent=1) + "\n")

        steps: dict[str, Callable[[], None]] = {
            "checked": lambda: check_all(rows, ITSELF, given.workers, index, began + 0.4 * given.seconds),
            "timed": lambda: time_all(rows, ITSELF, index, began + 0.65 * given.seconds),
            "gated": lambda: gate_all(rows, given.device, began + given.seconds, save),
        }
        for name, step in steps.items():
            step()
            facts[name] = f"after {time.monotonic() - began:.0f} s"
            print(name, facts[name], flush=True)
            save()
    print("\n".join(printed(rows)))


if __name__ == "__main__":
    main()
