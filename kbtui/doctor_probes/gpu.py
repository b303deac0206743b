"""GPU, driver, CUDA and counters. Effects: children that load NVML and torch; reads /proc/driver/nvidia."""

from pathlib import Path
from shutil import which
from typing import Any

from kbtui.doctor_probes.check import Check, State
from kbtui.doctor_probes.child import ask_python, output_lines

_NVML = """
import json, pynvml
pynvml.nvmlInit()
gpus = []
for i in range(pynvml.nvmlDeviceGetCount()):
    h = pynvml.nvmlDeviceGetHandleByIndex(i)
    try:
        n_others = len(pynvml.nvmlDeviceGetComputeRunningProcesses(h))
    except pynvml.NVMLError:
        n_others = 0
    gpus.append({"name": pynvml.nvmlDeviceGetName(h), "memory": pynvml.nvmlDeviceGetMemoryInfo(h).total,
                 "n_others": n_others})
print(json.dumps({"driver": pynvml.nvmlSystemGetDriverVersion(), "gpus": gpus}))
"""

_TORCH = """
import json, torch
ok = torch.cuda.is_available()
if ok:
    torch.zeros(1, device="cuda").add_(1).item()
print(json.dumps({"build": torch.version.cuda, "works": ok,
                  "arch": "%d.%d" % torch.cuda.get_device_capability() if ok else None}))
"""

_PARAMS = Path("/proc/driver/nvidia/params")
_SYS_ADMIN_OR_PERFMON = (1 << 21) | (1 << 38)
_NO_GPU_ADVICE = "searches run on model:a100: checked by the interpreter, timed by a model"


def ask_nvml(timeout_s: float = 10.0) -> dict[str, Any]:
    return ask_python(_NVML, timeout_s)


def judge_gpu(answer: dict[str, Any]) -> Check:
    """``answer`` is what the NVML child said."""
    if "error" in answer:
        loaded = Path("/proc/driver/nvidia/version").exists()
        found = f"driver is loaded, but NVML says: {answer['error']}" if loaded else "no NVIDIA GPU"
        advice = "nvidia-smi says more; in a container, pass the GPU through" if loaded else _NO_GPU_ADVICE
        return Check("gpu", State.FAIL if loaded else State.ABSENT, found, advice)
    gpus = answer["gpus"]
    if not gpus:
        return Check("gpu", State.ABSENT, f"driver {answer['driver']}, but no GPU", _NO_GPU_ADVICE)
    named = "; ".join(f"cuda:{i} {g['name']}, {g['memory'] >> 30} GiB" for i, g in enumerate(gpus))
    found = f"{named}; driver {answer['driver']}"
    if any(g["n_others"] for g in gpus):
        return Check("gpu", State.WARN, found, "other processes compute there: timing will wait and retake, or doubt")
    return Check("gpu", State.OK, found)


def cuda_check(has_gpu: bool) -> Check:
    if not has_gpu:
        return Check("cuda", State.ABSENT, "not needed without a GPU")
    return judge_cuda(ask_python(_TORCH, timeout_s=60.0))


def judge_cuda(answer: dict[str, Any]) -> Check:
    """``answer`` is what the torch child said on a machine with a GPU."""
    if "error" in answer:
        return Check("cuda", State.FAIL, f"torch failed: {answer['error']}", "nvidia-smi says whether the GPU is well")
    if answer["build"] is None:
        return Check("cuda", State.FAIL, "this torch is the CPU build", "pip install torch, without +cpu")
    if not answer["works"]:
        advice = "the driver may be too old for it: nvidia-smi shows the CUDA version it bears"
        return Check("cuda", State.FAIL, f"torch for CUDA {answer['build']} sees no GPU", advice)
    return Check("cuda", State.OK, f"torch for CUDA {answer['build']}, compute capability {answer['arch']}")


def ncu_check(has_gpu: bool) -> Check:
    """Nsight Compute, which the profile rung runs."""
    path = which("ncu") or next((str(p) for p in _ncu_places() if p.is_file()), None)
    if path is None:
        advice = "kernels are diagnosed without counters; install nsight-compute to have them" if has_gpu else ""
        return Check("nsight compute", State.WARN if has_gpu else State.ABSENT, "no ncu", advice)
    said = output_lines([path, "--version"])
    version = said[-1].removeprefix("Version ").split(" (")[0] if said else ""
    return Check("nsight compute", State.OK, f"{path} {version}".strip())


def _ncu_places() -> list[Path]:
    return [Path("/usr/local/cuda/bin/ncu"), *sorted(Path("/opt/nvidia/nsight-compute").glob("*/ncu"), reverse=True)]


def counters_check(has_gpu: bool) -> Check:
    try:
        params = _PARAMS.read_text()
    except OSError:
        params = None
    status = Path("/proc/self/status")
    return judge_counters(params, status.read_text() if status.is_file() else "", has_gpu)


def judge_counters(params: str | None, status: str, has_gpu: bool) -> Check:
    """Whether this process may read performance counters, from the driver's params and the process's capabilities.

    Source: NVIDIA, ERR_NVGPUCTRPERM (RmProfilingAdminOnly: 1 admits only CAP_SYS_ADMIN).
    """
    if not has_gpu:
        return Check("counters", State.ABSENT, "not needed without a GPU")
    restricted = params is None or "RmProfilingAdminOnly: 1" in params
    if not restricted:
        return Check("counters", State.OK, "open to every user (RmProfilingAdminOnly: 0)")
    effective = next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:")), 0)
    why = "the driver's parameters cannot be read" if params is None else "RmProfilingAdminOnly: 1"
    if effective & _SYS_ADMIN_OR_PERFMON:
        return Check("counters", State.OK, f"{why}, but this process is privileged")
    advice = (
        "diagnosis does without them; to open them, set NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module, "
        "or start the container with --cap-add SYS_ADMIN"
    )
    return Check("counters", State.WARN, f"refused: {why}, and this process lacks CAP_SYS_ADMIN", advice)
