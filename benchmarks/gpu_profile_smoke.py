"""Profile good and planted-slow kernels on a real GPU with ncu, and show what the diagnosis makes of them.

    python benchmarks/gpu_profile_smoke.py [--out DIR] [--kernels softmax_first,softmax_one_pass] [--confine off]

Needs an NVIDIA GPU, torch with CUDA, Triton and ncu. Prints one block a kernel (sentence, findings, counters, notes,
seconds) and writes ncu's raw pages to DIR (default: $OUT, else .), which become fixtures under tests/data/ncu/.
"""

import argparse
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from types import ModuleType

sys.path.insert(0, str(Path(__file__).parents[1]))

from kbtui.domain.device import DATA_SHEETS, DeviceSpec, closest_data_sheet
from kbtui.domain.measurement import Clock
from kbtui.domain.problem import Problem, ShapeRole
from kbtui.domain.profile import Profile
from kbtui.evaluation.profiling import metrics, permission
from kbtui.evaluation.profiling.diagnose import diagnose
from kbtui.evaluation.profiling.ncu import Profiler
from kbtui.problems import load_problem

SHOWN = (
    metrics.DURATION, metrics.SM_PCT, metrics.DRAM_PCT, metrics.DRAM_READ, metrics.DRAM_WRITE, metrics.L2_HIT,
    metrics.THEORETICAL_OCCUPANCY, metrics.ACHIEVED_OCCUPANCY, metrics.REGISTERS, metrics.LOAD_EFFICIENCY,
    metrics.STORE_EFFICIENCY, metrics.SECTORS_PER_LOAD, metrics.LOCAL_LOAD_SECTORS, metrics.BANK_CONFLICTS,
    metrics.TENSOR_PCT, metrics.TENSOR_INSTRUCTIONS, metrics.WAVES,
)  # fmt: skip


def planted() -> ModuleType:
    import importlib.util

    path = Path(__file__).parents[1] / "tests" / "evaluation_model" / "planted_softmax.py"
    found = importlib.util.spec_from_file_location("planted_softmax", path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def kernels() -> dict[str, tuple[str, str]]:
    """Name -> (problem, source)."""
    plants = planted()
    found = {
        "softmax_one_pass": ("softmax", plants.one_pass(16)),
        "softmax_one_program": ("softmax", plants.grid_stride(1)),
        "softmax_uncoalesced": ("softmax", plants.UNCOALESCED),
        "softmax_one_warp": ("softmax", plants.one_pass(1)),
    }
    for name in ("softmax", "rms_norm", "linear_relu_div", "sdp_attn"):
        source = load_problem(name).kernel_source
        if source is not None:
            found[f"{name}_first"] = (name, source)
    return found


def gpu() -> DeviceSpec:
    import torch

    properties = torch.cuda.get_device_properties(0)
    sheet = closest_data_sheet(properties.name, properties.major * 10 + properties.minor)
    return replace(sheet, key="cuda:0", name=properties.name, clock=Clock.MEASURED)


def show(name: str, problem: Problem, device: DeviceSpec, profile: Profile, wall_s: float) -> None:
    shape = problem.spec.shapes_of(ShapeRole.TUNE)[0]
    print(f"\n== {name} on {shape.name}: {wall_s:.1f} s")
    if profile.not_profiled is not None:
        print(f"   not profiled: {profile.not_profiled}")
        return
    time_us = (profile.metric(metrics.DURATION) or 0.0) / 1e3
    found = diagnose(problem.spec, device, shape, time_us, (), profile)
    print(f"   {found.sentence}")
    print("   " + ", ".join(f"{f.bottleneck} {f.weight:.2f}" for f in found.findings))
    print(f"   kernels {profile.kernels}; stalls " + ", ".join(f"{r} {p:.0f} %" for r, p in profile.stalls[:5]))
    for metric in SHOWN:
        value = profile.metric(metric)
        print(f"      {metric:80s} {'missing' if value is None else f'{value:,.2f}'}")
    for note in profile.notes:
        print(f"   NOTE {note}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    parser.add_argument("--kernels", default="")
    parser.add_argument("--confine", choices=("on", "off", "both"), default="both")
    parser.add_argument("--timeout", type=float, default=90.0)
    given = parser.parse_args()
    chosen = {n: k for n, k in kernels().items() if not given.kernels or n in given.kernels.split(",")}
    able = permission.counters()
    print(f"ncu {able.ncu}; stands in the way: {able.why_not or 'nothing known'}")
    device = gpu() if able.why_not is None else DATA_SHEETS["h200"]
    given.out.mkdir(parents=True, exist_ok=True)
    confined = given.confine != "off"
    with tempfile.TemporaryDirectory(prefix="profile-smoke-") as folder:
        for name, (problem_name, source) in chosen.items():
            problem = load_problem(problem_name)
            profile, wall_s, attached = profiled(problem, source, Path(folder), confined, given.timeout)
            if profile.not_profiled is not None and confined and given.confine == "both":
                print(f"\n!! {name} confined: {profile.not_profiled}; trying without the sandbox")
                profile, wall_s, attached = profiled(problem, source, Path(folder), False, given.timeout)
                confined = profile.not_profiled is not None
            show(name, problem, device, profile, wall_s)
            for attachment in attached:
                if attachment.name.endswith(".csv"):
                    (given.out / f"{name}_h200.csv").write_bytes(attachment.content)
    return 0


def profiled(problem: Problem, source: str, folder: Path, confine: bool, timeout_s: float):  # type: ignore[no-untyped-def]
    profiler = Profiler(0, folder, timeout_s=timeout_s, confine=confine)
    started = time.monotonic()
    shape = problem.spec.shapes_of(ShapeRole.TUNE)[0]
    profile, attached = profiler.profile(problem, source, shape, 0)
    return profile, time.monotonic() - started, attached


if __name__ == "__main__":
    sys.exit(main())
